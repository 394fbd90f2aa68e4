// The scene: an object of every kind, over functions of the host that can all meddle.
#include "tests/calls/scene.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace velo::testing {

std::function<void()> meddling;
const char* meddles_in = "";

void meddle() {
  if (!meddling) return;
  const std::function<void()> once = std::move(meddling);
  meddling = nullptr;
  once();
}
void meddle_in(const char* function) {
  if (std::strcmp(function, meddles_in) == 0) meddle();
}

const velo_allocator scene_allocator = {
    sizeof(velo_allocator), 0, nullptr,
    [](void*, std::uint64_t bytes, std::uint64_t alignment, const velo_device*, void*) {
      meddle_in("allocate");
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    },
    [](void*, void* block, std::uint64_t, const velo_device*, void*) {
      meddle_in("deallocate");
      std::free(block);
    }};

namespace {

const velo_parallel_for host_loops = {
    sizeof(velo_parallel_for), 2, nullptr,
    [](void*, std::int64_t tasks, void (*task)(void*, std::int64_t), void* user) {
      meddle_in("parallel_for");
      for (std::int64_t i = 0; i < tasks; ++i) task(user, i);
    }};

velo_status kernel_of_host(std::int64_t, float* y) {
  meddle_in("kernel");
  return y[0] < 0 ? VELO_ERR_ARGUMENT : VELO_OK;
}

void open_context(world& w) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.allocator = &scene_allocator;
  desc.parallel_for = &host_loops;
  desc.log = [](void*, velo_log_level, const char*, const char*) { meddle_in("log"); };
  desc.config_json = R"({"log": "info"})";
  w.open(desc);
  must(velo_stream_create(w.context, &w.queue));
  must(velo_event_create(w.context, &w.event));
  velo_pack_desc matrix = VELO_PACK_DESC_INIT;
  matrix.k = matrix.n = side;
  must(velo_pack_create(w.context, &matrix, &w.pack));
  register_kernel(w);
  void* function = nullptr;
  must(velo_closure_create(w.now, "add", "a, b, y", &function, &w.closure));
  velo_profiler_desc profile = VELO_PROFILER_DESC_INIT;
  profile.events = 64;
  must(velo_profiler_create(w.context, &profile, &w.profiler));
}

void open_memory(world& w) {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.limit = std::uint64_t{8} << 20;
  desc.pressure = [](void*, std::uint64_t) -> std::int32_t {
    meddle_in("pressure");
    return 0;
  };
  desc.log = [](void*, velo_log_level, const char*, const char*) { meddle_in("pool log"); };
  must(velo_pool_create(&desc, &w.pool));
  velo_allocator below = VELO_ALLOCATOR_INIT;
  must(velo_pool_allocator(w.pool, &below));
  velo_adaptor_desc counted = VELO_ADAPTOR_DESC_INIT;
  counted.kind = VELO_ADAPTOR_STATISTICS;
  counted.upstream = &below;
  must(velo_adaptor_create(&counted, &w.adaptor));
  velo_plan_desc planned = VELO_PLAN_DESC_INIT;
  planned.pool = w.pool;
  must(velo_plan_create(&planned, &w.plan));
  velo_recompute_desc restored = VELO_RECOMPUTE_DESC_INIT;
  restored.allocator = &below;
  must(velo_recompute_create(&restored, &w.recompute));
  must(velo_recompute_plan_create(&w.recompute_plan));
  velo_swap_desc swapped = VELO_SWAP_DESC_INIT;
  swapped.memory = w.pool;
  must(velo_swap_create(w.context, &swapped, &w.swap));
}

void open_groups(world& w) {
  static float gradients[16] = {};
  static const std::int64_t all[] = {16};
  const velo_tensor whole = view_of(gradients, f32, all);
  must(velo_group_create(w.context, nullptr, &w.groups[0]));
  must(velo_buckets_create(w.queue, w.groups[0], &whole, all, 1, nullptr, &w.buckets));
  velo_dispatcher_desc experts = VELO_DISPATCHER_DESC_INIT;
  experts.experts = experts.top_k = 1;
  must(velo_dispatcher_create(w.groups[0], &experts, &w.dispatcher));
  must(velo_routing_create(w.dispatcher, &w.routing));
  velo_collective_desc barrier = VELO_COLLECTIVE_DESC_INIT;
  must(velo_collective_create(w.groups[0], &barrier, &w.collective));
  velo_topology_desc ranks = VELO_TOPOLOGY_DESC_INIT;
  must(velo_topology_create(&ranks, &w.topology));
  must(velo_sharding_create(w.topology, &w.sharding));
  velo_sequence_desc sequence = VELO_SEQUENCE_DESC_INIT;
  sequence.cp = 2, sequence.sequence = 8;
  must(velo_sequence_plan_create(&sequence, &w.sequence_plan));
  static const std::int64_t loads[] = {1};
  velo_expert_plan_desc places = VELO_EXPERT_PLAN_DESC_INIT;
  places.loads = loads;
  must(velo_expert_plan_create(&places, &w.expert_plan));
  velo_sublayers_desc parts = VELO_SUBLAYERS_DESC_INIT;
  parts.forward_layers = 1;
  must(velo_sublayers_create(&parts, &w.sublayers));
}

void open_schedules(world& w) {
  static const char config[] =
      "{\"model\": {\"layers\": 4, \"hidden\": 64, \"heads\": 4, \"ffn_hidden\": 128, "
      "\"vocabulary\": 100}, \"training\": {\"global_batch\": 8, \"sequence\": 32},"
      "\"accelerators\": 1, \"search\": {\"tp\": [1], \"cp\": [1], \"pp\": [1], \"vpp\": [1],"
      "\"micro_batch\": [1], \"recompute\": [\"full\"], \"kind\": [\"1f1b\"]}}";
  const velo_schedule_desc alone = desc_of(VELO_SCHEDULE_1F1B, {1, 2});
  must(velo_schedule_create(&alone, &w.schedule));
  must(velo_schedule_simulate(w.schedule, nullptr, &w.timeline));
  must(velo_mailbox_create(2, std::int64_t{20} * 1000000000, &w.mailbox));
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.forward = desc.backward = [](void*, velo_executor_call*) -> velo_status { return VELO_OK; };
  must(velo_executor_create(w.context, w.schedule, &desc, &w.executor));
  velo_tune_desc tuned = VELO_TUNE_DESC_INIT;
  tuned.config = config;
  tuned.config_length = sizeof config - 1;
  must(velo_tune(&tuned, &w.tuning));
}

}  // namespace

void register_kernel(world& w) {
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  desc.op = "of_host";
  desc.signature = "s(lp)";
  desc.binding = "y.numel, y.data";
  desc.tensors = "inout y f32";
  desc.function = reinterpret_cast<void*>(&kernel_of_host);
  must(velo_kernel_register(w.context, &desc, &w.kernel));
}

scene::scene() {
  meddles_in = "";
  open_context(*this);
  open_memory(*this);
  open_groups(*this);
  open_schedules(*this);
}

scene::~scene() {
  meddling = nullptr;
  close();
}

}  // namespace velo::testing
