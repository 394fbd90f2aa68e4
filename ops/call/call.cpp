// The life of a call (call.hpp): complete, check, choose, run or queue.
#include "ops/call/call.hpp"

#include <cstring>

#include "core/handle/guard.hpp"
#include "core/handle/handle.hpp"
#include "core/host/clock.hpp"
#include "ops/call/counters.hpp"
#include "ops/call/queued_call.hpp"
#include "ops/replay/checked_run.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

[[noreturn]] void refuse_size(const op_spec& spec, std::uint32_t size) {
  fail(VELO_ERR_STRUCT, "args.struct_size",
       text("a multiple of 8 in [8, %u], usually sizeof(%s_args) = %u", core::max_struct_size,
            spec.function, spec.struct_size),
       text("%u", size));
}

// Throws the reason why the configured kernel, or the last one, does not serve.
[[noreturn]] void refuse_choice(op_id op, const void* args, const problem_storage& problem,
                                const core::context& context) {
  const op_spec& spec = spec_of(op);
  const kernel_list& all = *definition_of(op).kernels;
  const char* forced = context.forced_kernel(spec.name);
  for (int i = 0; forced != nullptr && i < all.count; ++i) {
    if (std::strcmp(all.entries[i].name, forced) != 0) continue;
    fail(VELO_ERR_UNSUPPORTED, "args",
         text("arguments for the kernel \"%s\", which the configuration names for %s", forced,
              spec.name),
         text("others (%s)", refusal(op, i, args, problem, context)));
  }
  fail(VELO_ERR_UNSUPPORTED, "args", text("arguments that some kernel of %s can take", spec.name),
       "others; velo_op_explain lists each kernel's reason");
}

// Work that waits is timed, with its waits, but not checked: its peers would have to repeat it.
void execute_waiting(op_id op, const kernel_entry& kernel, const void* args,
                     problem_storage& problem, core::stream& stream, observing asked) {
  const operator_def& def = definition_of(op);
  const observing how = asked == observing::checks ? observing::nothing : asked;
  stream.call(
      {core::demand::waits},
      [&](core::execution& on) {
        const auto nothing = [] {};
        // Collectives begin as they are entered, and a slice holds the slices inside it.
        const std::uint64_t begin = has(how, observing::profiles) ? core::ticks_now() : 0;
        def.waits->enter(args, problem.bytes, stream, enqueue(nothing));
        if (__builtin_expect(how != observing::nothing, false))
          return run_observed(op, kernel, args, problem, how, on, begin);
        def.run(args, problem.bytes, kernel.kernels, on);
      },
      [&] {
        auto queued = queued_call::make(stream, op, kernel, args, problem);
        queued->observe(how);
        return queued;
      },
      [&](queued_call& queued, const auto& put) {
        def.waits->enter(queued.args(), queued.problem(), stream, enqueue(put));
      });
}

// Checks, chooses, runs or queues.
void execute_plainly(op_id op, const void* args, core::stream& stream,
                     observing how = observing::nothing) {
  const core::context& context = stream.owner();
  problem_storage problem;
  check(op, args, context, purpose::run, problem, nullptr);
  const int chosen = choose(op, args, problem, context);
  if (chosen < 0) refuse_choice(op, args, problem, context);
  const operator_def& def = definition_of(op);
  const kernel_entry& kernel = def.kernels->entries[chosen];
  if (def.waits != nullptr) return execute_waiting(op, kernel, args, problem, stream, how);
  stream.call(
      {core::demand::computes},
      [&](core::execution& on) {
        if (__builtin_expect(how != observing::nothing, false))
          return run_observed(op, kernel, args, problem, how, on);
        if (problem.writes) def.run(args, problem.bytes, kernel.kernels, on);
      },
      [&] {
        auto queued = queued_call::make(stream, op, kernel, args, problem);
        queued->observe(how);
        return queued;
      });
}

// The arguments are checked twice, since the cost needs the problem of a checked call. A call that
// is refused does not count.
void execute_counted(op_id op, const void* args, core::stream& stream, core::counting as,
                     observing how) {
  const core::context& context = stream.owner();
  op_counters& counters = context.attached<op_counters>();
  problem_storage problem;
  check(op, args, context, purpose::run, problem, nullptr);
  const op_cost cost = cost_of_checked(op, args, problem, nullptr);
  execute_plainly(op, args, stream, how);
  counters.count(op, cost, as);
}

observing observing_of(core::stream& stream, const core::settings& now, bool counted) {
  if (now.check.mode != core::checking::off &&
      stream.owner().attached<call_checks>().picks_next(now.check))
    return observing::checks;
  const int counts = counted ? static_cast<int>(observing::counts) : 0;
  const bool profiled = stream.owner().profile().is_on();
  return static_cast<observing>(counts + (profiled ? static_cast<int>(observing::profiles) : 0));
}

// A call of a context that counts, checks or is profiled.
__attribute__((noinline)) void execute_observed(op_id op, const void* args, core::stream& stream,
                                                const core::settings& now) {
  const bool counted = now.counting != core::counting::off;
  const observing how = observing_of(stream, now, counted);
  if (!counted) return execute_plainly(op, args, stream, how);
  execute_counted(op, args, stream, now.counting, how);
}

void record_call(op_id op, const kernel_entry& kernel, std::uint64_t begin, const op_cost* cost,
                 const core::execution& on) {
  core::profile_event e;
  e.begin = begin;
  e.name = spec_of(op).name;
  e.detail = kernel.name;
  if (cost != nullptr) {
    e.flops = cost->flops;
    e.bytes = cost->bytes_read + cost->bytes_written;
  }
  on.context.profile().add(e);
}

void run_timed(op_id op, const kernel_entry& kernel, const void* args,
               const problem_storage& problem, observing how, core::execution& on,
               std::uint64_t begin) {
  const bool profiles = has(how, observing::profiles), counts = has(how, observing::counts);
  const bool has_work = profiles && on.context.profile().has_work();
  if (profiles && begin == 0) begin = core::ticks_now();
  const std::int64_t start = counts ? core::now_ns() : 0;
  definition_of(op).run(args, problem.bytes, kernel.kernels, on);
  const double seconds = counts ? 1e-9 * static_cast<double>(core::now_ns() - start) : 0;
  if (profiles && !has_work) record_call(op, kernel, begin, nullptr, on);
  if (!counts && !has_work) return;
  const op_cost cost = cost_of_checked(op, args, problem, nullptr);
  if (has_work) record_call(op, kernel, begin, &cost, on);
  if (counts)
    on.context.attached<op_counters>().count_time(op, seconds, least_seconds(cost, on.context));
}

}  // namespace

void run_observed(op_id op, const kernel_entry& kernel, const void* args,
                  const problem_storage& problem, observing how, core::execution& on,
                  std::uint64_t begin) {
  if (!problem.writes && definition_of(op).waits == nullptr) return;
  if (how != observing::checks) return run_timed(op, kernel, args, problem, how, on, begin);
  if (!can_be_checked(op, kernel))
    return definition_of(op).run(args, problem.bytes, kernel.kernels, on);
  const verdict found = checked_run(op, kernel, args, problem, on);
  on.context.attached<op_counters>().count_check(op, found == verdict::agrees);
}

void set_defaults(const op_spec& spec, args_block& block) {
  block.struct_size = spec.struct_size;
  block.reserved = 0;
  for (int i = 0; i < spec.field_count; ++i) {
    const field& f = spec.fields[i];
    if (f.kind == field_kind::f64) {
      block.values[i].f = f.default_real;
    } else {
      block.values[i].i = f.default_int;  // zero, hence NULL, for tensors, packs and lists
    }
  }
}

const void* complete(const op_spec& spec, const void* args, args_block& block) {
  if (args == nullptr)
    fail(VELO_ERR_NULL, "args", "a pointer to the operator's args struct", "NULL");
  std::uint32_t size = 0, reserved = 0;
  std::memcpy(&size, args, sizeof size);
  if (size < 8 || size > core::max_struct_size || size % 8 != 0) refuse_size(spec, size);
  std::memcpy(&reserved, static_cast<const char*>(args) + sizeof size, sizeof reserved);
  if (reserved != 0) fail(VELO_ERR_ARGUMENT, "args.reserved", "0", text("%u", reserved));
  if (size == spec.struct_size) return args;
  const auto* bytes = static_cast<const unsigned char*>(args);
  for (std::uint32_t i = spec.struct_size; i < size; ++i) {
    if (bytes[i] != 0) {
      fail(VELO_ERR_UNSUPPORTED, "args.struct_size",
           text("at most %u bytes in use: this library knows no more fields", spec.struct_size),
           text("a value in byte %u, from newer headers", i));
    }
  }
  if (size > spec.struct_size) return args;
  set_defaults(spec, block);
  std::memcpy(block.values, bytes + 8, size - 8);
  return &block;
}

void execute(op_id op, const void* args, core::stream& stream) {
  const core::settings& now = stream.owner().configuration().now();
  const bool observed = now.counting != core::counting::off ||
                        now.check.mode != core::checking::off || stream.owner().profile().is_on();
  if (__builtin_expect(observed, false)) return execute_observed(op, args, stream, now);
  execute_plainly(op, args, stream);
}

velo_status call(op_id op, velo_stream handle, const void* args) noexcept {
  const op_spec& spec = spec_of(op);
  return core::guard(
      spec.function,
      [&] {
        core::stream& stream = core::resolve<core::stream>(handle, "stream");
        args_block block;
        execute(op, complete(spec, args, block), stream);
      },
      core::of_operator{});
}

}  // namespace velo::ops
