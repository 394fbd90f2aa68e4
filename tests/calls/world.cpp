// Opening and closing a world, and its handles by name.
#include "tests/calls/world.hpp"
#include "tests/structs.hpp"

#include <stdexcept>

namespace velo::testing {
namespace {

struct kind {
  const char* name;
  void (*destroy)(world&);
  void* (*handle)(const world&);
};

template <auto Member, auto Destroy>
constexpr kind kind_of(const char* name) {
  return {name, [](world& w) { Destroy(w.*Member); },
          [](const world& w) -> void* { return w.*Member; }};
}
#define KIND(name) kind_of<&world::name, &velo_##name##_destroy>("velo_" #name)
const kind kinds[] = {KIND(context),
                      kind_of<&world::queue, &velo_stream_destroy>("velo_stream"),
                      {"velo_group", [](world& w) { velo_group_destroy(w.groups[0]); },
                       [](const world& w) -> void* { return w.groups[0]; }},
                      KIND(event),
                      KIND(pack),
                      KIND(kernel),
                      KIND(closure),
                      KIND(profiler),
                      KIND(collective),
                      KIND(buckets),
                      KIND(routing),
                      KIND(dispatcher),
                      KIND(swap),
                      KIND(executor),
                      KIND(timeline),
                      KIND(adaptor),
                      KIND(plan),
                      KIND(recompute),
                      KIND(recompute_plan),
                      KIND(pool),
                      KIND(topology),
                      KIND(sharding),
                      KIND(sequence_plan),
                      KIND(expert_plan),
                      KIND(sublayers),
                      KIND(schedule),
                      KIND(mailbox),
                      KIND(tuning)};
#undef KIND

const kind* find_kind(const std::string& name) {
  for (const kind& one : kinds)
    if (one.name == name) return &one;
  return nullptr;
}

// Destroys and forgets.
template <class Handle>
void end(Handle& handle, void (*destroy)(Handle)) {
  destroy(handle);
  handle = nullptr;
}

void free_memory(world& w) {
  if (w.memory == nullptr) return;
  if (w.plan != nullptr)
    velo_plan_free(w.plan, w.memory, 1 << 20, nullptr);
  else
    velo_pool_free(w.pool, w.memory, 1 << 20, nullptr);
  w.memory = nullptr;
}

}  // namespace

void must(velo_status status) {
  if (status != VELO_OK) throw std::runtime_error("the preparation of a call failed");
}

void world::open() {
  const velo_context_desc desc = context_desc(2, allocator_);
  open(desc);
}

void world::open(const velo_context_desc& desc) {
  must(velo_context_create(&desc, &context));
  must(velo_context_stream(context, &now));
}

// Objects that stand on others go first. A context takes along the rest that is its own: streams,
// events, packs, kernels, closures, profilers, groups, collectives, buckets,
// dispatchers, routings.
void world::close() {
  free_memory(*this);
  if (managed != nullptr) end(managed, &velo_tensor_release);
  end(timeline, &velo_timeline_destroy);
  end(executor, &velo_executor_destroy);
  if (swap != nullptr && plan != nullptr) velo_swap_end_step(swap);
  end(swap, &velo_swap_destroy);
  end(plan, &velo_plan_destroy);
  end(recompute, &velo_recompute_destroy);
  end(recompute_plan, &velo_recompute_plan_destroy);
  end(adaptor, &velo_adaptor_destroy);
  end(pool, &velo_pool_destroy);
  end(peer, &velo_context_destroy);
  end(context, &velo_context_destroy);
  end(sequence_plan, &velo_sequence_plan_destroy);
  end(expert_plan, &velo_expert_plan_destroy);
  end(sublayers, &velo_sublayers_destroy);
  end(sharding, &velo_sharding_destroy);
  end(topology, &velo_topology_destroy);
  end(schedule, &velo_schedule_destroy);
  end(mailbox, &velo_mailbox_destroy);
  end(tuning, &velo_tuning_destroy);
  now = queue = peer_queue = nullptr;
  groups[0] = groups[1] = groups[2] = nullptr;
}

void* world::handle_of(const std::string& kind) const {
  const auto* known = find_kind(kind);
  return known == nullptr ? nullptr : known->handle(*this);
}
void world::destroy(const std::string& kind) {
  const auto* known = find_kind(kind);
  if (known == nullptr) throw std::runtime_error("a kind of handle without a row: " + kind);
  known->destroy(*this);
}

const std::vector<std::string>& handle_kinds() {
  static const std::vector<std::string> all = {
#define VELO_HANDLE(name, article, order) "velo_" #name,
#include "abi/generated/handles.inc"
#undef VELO_HANDLE
  };
  return all;
}

}  // namespace velo::testing
