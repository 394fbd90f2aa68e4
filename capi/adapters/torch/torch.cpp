// torch's dispatcher: velo_torch_register() puts every operator into it as velo::<op>, found by
// torch.ops.velo.rms_norm(x, gamma) in Python and by torch's C++ callers.
//
// - overloads, arguments and results follow from the fields: torch_schema.hpp has the rule. Results
//   are made by torch, in the shapes of velo_op_infer.
// - kernels stand under CPU and Meta. The dispatcher resolves negated and conjugated views before a
//   kernel (where one writes into its arguments, a kernel under Negative refuses them), and refuses
//   other devices and layouts for want of a kernel. A call that mixes CPU and meta tensors comes to
//   Meta and is refused. Meta kernels make numbers of symbolic sizes; a fake that is registered
//   from Python over them keeps the symbols.
// - gradients are not registered here: an output has none.
// - a failure is a std::runtime_error with velo's sentence, Python's RuntimeError.
//
// Work runs on torch's own threads (torch_threads.hpp), or on the context given by
// velo_adapters_set_context. Thread class: any; calls take turns on the context. What was
// registered stays, as the library does.
#include <memory>
#include <mutex>
#include <stdexcept>

#include "capi/adapters/entries.hpp"
#include "capi/adapters/failure.hpp"
#include "capi/adapters/fork_lock.hpp"
#include "capi/adapters/torch/call.hpp"
#include "capi/adapters/torch/library.hpp"
#include "capi/adapters/torch/threads.hpp"
#include "velo/adapters.h"

namespace velo::adapters {
namespace {

struct registration {
  torch::binding torch;
  std::vector<torch_plan> plans;  // by operator, then overload

  const torch_plan& plan(int op, int overload) const {
    return plans[static_cast<std::size_t>(op) * torch_overload_count +
                 static_cast<std::size_t>(overload)];
  }
};

std::atomic<const registration*> published{nullptr};  // what kernels use; never taken back
std::atomic<bool> registered{false};
fork_lock registering;

template <class Each>
void for_each_overload(const registration& all, Each&& each) {
  for (int op = 0; op < operator_count; ++op) {
    for (int o = 0; o < torch_overload_count; ++o) {
      if (all.plan(op, o).exists) each(op, o, all.plan(op, o));
    }
  }
}

void define(const registration& all, torch_library& to) {
  for_each_overload(all, [&](int op, int o, const torch_plan& plan) {
    to.define(torch_schema(operators[op], torch_overload{o}, plan));
  });
}

// Kernels under a key, kept in the library. torch resolves negated views itself, but not where a
// kernel writes into its arguments: there a kernel refuses them.
void implement(const registration& all, const char* key_name, torch_key key, torch_library& in) {
  in.open_kernels("velo", key_name);
  for_each_overload(all, [&](int op, int o, const torch_plan& plan) {
    if (key == torch_key::negative && !plan.writes_arguments) return;
    const std::string name = torch_name(operators[op], torch_overload{o});
    in.implement(name, torch_entries[op].of[o * torch_key_count + static_cast<int>(key)]);
  });
}

void register_all() {
  const std::lock_guard<fork_lock> turn(registering);
  if (registered) return;
  auto all = std::make_unique<registration>();
  all->torch = torch::find();
  for (int op = 0; op < operator_count; ++op) {
    for (int o = 0; o < torch_overload_count; ++o)
      all->plans.push_back(plan_of(operators[op], torch_overload{o}));
  }
  const registration& kept = *all.release();
  published = &kept;  // a kernel may be called as soon as it is there
  torch_library definitions(kept.torch), cpu(kept.torch), meta(kept.torch), negative(kept.torch);
  definitions.open_definitions("velo");
  define(kept, definitions);
  implement(kept, "CPU", torch_key::cpu, cpu);
  implement(kept, "Meta", torch_key::meta, meta);
  implement(kept, "Negative", torch_key::negative, negative);
  definitions.keep();
  cpu.keep();
  meta.keep();
  negative.keep();
  registered = true;
}

}  // namespace

const torch::binding& torch_in_use() {
  if (!registered)
    refuse(VELO_ERR_STATE, "torch: expected velo_torch_register() before, got no call of it");
  return published.load()->torch;
}

void enter_torch(int op, torch_overload overload, torch_key key, std::uint64_t* stack) {
  const registration& all = *published.load(std::memory_order_acquire);
  refusal failed;
  {
    torch_call made(all.torch, operators[op], all.plan(op, static_cast<int>(overload)), key, stack);
    const auto body = [&] {
      made.run();
      made.give_results(stack);
    };
    if (attempt({"velo::", operators[op].name}, failed, body) == VELO_OK) return;
  }
  throw std::runtime_error(failed.text);
}

}  // namespace velo::adapters

using namespace velo::adapters;

velo_status velo_torch_register(void) {
  refusal failed;
  return attempt({"velo_torch_register"}, failed, [] { register_all(); });
}

velo_status velo_torch_context(velo_context* context) {
  if (context == nullptr) return VELO_ERR_NULL;
  refusal failed;
  return attempt({"velo_torch_context"}, failed, [&] { *context = torch_context(torch_in_use()); });
}
