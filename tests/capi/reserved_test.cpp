// Reserved fields, which must be 0 so that they can gain a meaning.
#include "tests/capi/values.hpp"

using namespace velo::testing;

namespace {

// Checks that call(&made) is refused for what stands in made.reserved.
template <class Struct, class Call>
void check_reserved(Struct made, const char* argument, const Call& call) {
  INFO(__PRETTY_FUNCTION__);
  made.reserved = 1;
  CHECK_REFUSED(call(&made), VELO_ERR_ARGUMENT, argument);
}

}  // namespace

TEST_CASE("what stands in a reserved field is refused, in every struct that has one") {
  live_context c;
  check_reserved<velo_allocator>(VELO_ALLOCATOR_INIT, "desc.allocator.reserved", [](auto* a) {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.allocator = a;
    velo_context made = nullptr;
    return velo_context_create(&desc, &made);
  });
  velo_kernel kernel = nullptr;
  check_reserved<velo_kernel_desc>(VELO_KERNEL_DESC_INIT, "desc.reserved",
                                   [&](auto* d) { return velo_kernel_register(c, d, &kernel); });
  velo_profiler profiler = nullptr;
  check_reserved<velo_profiler_desc>(VELO_PROFILER_DESC_INIT, "desc.reserved", [&](auto* d) {
    return velo_profiler_create(c, d, &profiler);
  });
  velo_pool pool = nullptr;
  check_reserved<velo_pool_desc>(VELO_POOL_DESC_INIT, "desc.reserved",
                                 [&](auto* d) { return velo_pool_create(d, &pool); });
  velo_plan plan = nullptr;
  check_reserved<velo_plan_desc>(VELO_PLAN_DESC_INIT, "desc.reserved",
                                 [&](auto* d) { return velo_plan_create(d, &plan); });
  check_reserved<velo_recompute_budget>(VELO_RECOMPUTE_BUDGET_INIT, "budget.reserved", [](auto* b) {
    velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
    velo_recompute_choice choice = VELO_RECOMPUTE_CHOICE_INIT;
    return velo_recompute_choose(&rule, b, nullptr, 0, nullptr, &choice);
  });
  velo_recompute_desc kept = VELO_RECOMPUTE_DESC_INIT;
  velo_recompute recompute = nullptr;
  check_reserved(kept, "desc.reserved",
                 [&](auto* d) { return velo_recompute_create(d, &recompute); });

  velo_allocator below = VELO_ALLOCATOR_INIT;
  REQUIRE(velo_pool_create(nullptr, &pool) == VELO_OK);
  REQUIRE(velo_pool_allocator(pool, &below) == VELO_OK);
  kept.allocator = &below;
  REQUIRE(velo_recompute_create(&kept, &recompute) == VELO_OK);
  check_reserved<velo_recompute_region>(
      VELO_RECOMPUTE_REGION_INIT, "region.reserved", [&](auto* region) {
        std::int64_t index = 0;
        return velo_recompute_add(recompute, region, nullptr, &index);
      });
  velo_recompute_destroy(recompute);
  velo_pool_destroy(pool);

  velo_recompute_plan steps = nullptr;
  REQUIRE(velo_recompute_plan_create(&steps) == VELO_OK);
  check_reserved<velo_recompute_plan_options>(
      VELO_RECOMPUTE_PLAN_OPTIONS_INIT, "options.reserved",
      [&](auto* options) { return velo_recompute_plan_solve(steps, options); });
  velo_recompute_plan_destroy(steps);

  velo_group group = nullptr;
  check_reserved<velo_group_desc>(VELO_GROUP_DESC_INIT, "desc.reserved",
                                  [&](auto* d) { return velo_group_create(c, d, &group); });
  check_reserved<velo_host_collectives>(VELO_HOST_COLLECTIVES_INIT, "desc.host.reserved",
                                        [&](auto* host) {
                                          velo_group_desc desc = VELO_GROUP_DESC_INIT;
                                          desc.transport = VELO_TRANSPORT_HOST;
                                          desc.host = host;
                                          return velo_group_create(c, &desc, &group);
                                        });
  velo_collective collective = nullptr;
  REQUIRE(velo_group_create(c, nullptr, &group) == VELO_OK);
  check_reserved<velo_collective_desc>(VELO_COLLECTIVE_DESC_INIT, "desc.reserved", [&](auto* d) {
    return velo_collective_create(group, d, &collective);
  });
  velo_dispatcher_desc experts = VELO_DISPATCHER_DESC_INIT;
  experts.experts = 1, experts.top_k = 1;
  velo_dispatcher dispatcher = nullptr;
  check_reserved<velo_dispatcher_desc>(experts, "desc.reserved", [&](auto* d) {
    return velo_dispatcher_create(group, d, &dispatcher);
  });
  velo_topology topology = nullptr;
  check_reserved<velo_topology_desc>(VELO_TOPOLOGY_DESC_INIT, "desc.reserved",
                                     [&](auto* d) { return velo_topology_create(d, &topology); });
  velo_sequence_plan sequence = nullptr;
  check_reserved<velo_sequence_desc>(VELO_SEQUENCE_DESC_INIT, "desc.reserved", [&](auto* d) {
    return velo_sequence_plan_create(d, &sequence);
  });
  velo_sublayers_desc parts = VELO_SUBLAYERS_DESC_INIT;
  velo_sublayers sublayers = nullptr;
  REQUIRE(velo_sublayers_create(&parts, &sublayers) == VELO_OK);
  velo_sublayers_run_desc run = VELO_SUBLAYERS_RUN_DESC_INIT;
  run.compute = [](void*, velo_stream, const velo_sublayer_step*) { return velo_status{VELO_OK}; };
  check_reserved(run, "desc.reserved", [&](auto* d) {
    return velo_sublayers_run(c.inline_stream(), c.inline_stream(), sublayers, d);
  });
  velo_sublayers_destroy(sublayers);
  velo_schedule_desc order = VELO_SCHEDULE_DESC_INIT;
  velo_schedule schedule = nullptr;
  REQUIRE(velo_schedule_create(&order, &schedule) == VELO_OK);
  velo_timeline timeline = nullptr;
  check_reserved<velo_schedule_costs>(VELO_SCHEDULE_COSTS_INIT, "costs.reserved", [&](auto* costs) {
    return velo_schedule_simulate(schedule, costs, &timeline);
  });
  REQUIRE(velo_schedule_read(schedule, VELO_SCHEDULE_CSV, "0F0,0B0\n", 8) == VELO_OK);
  check_reserved<velo_executor_validation>(
      VELO_EXECUTOR_VALIDATION_INIT, "desc.validation.reserved", [&](auto* validation) {
        velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
        velo_executor executor = nullptr;
        desc.validation = validation;
        return velo_executor_create(c, schedule, &desc, &executor);
      });
  velo_schedule_destroy(schedule);
  velo_tuning tuning = nullptr;
  check_reserved<velo_tune_desc>(VELO_TUNE_DESC_INIT, "desc.reserved",
                                 [&](auto* d) { return velo_tune(d, &tuning); });
  std::int64_t count = 0;
  check_reserved(pointer(&count), "count",
                 [](auto* value) { return velo_invoke("velo_op_count", value, 1, nullptr); });

  // These, velo_shape, velo_cost, velo_op_counts, velo_plan_buffer, velo_plan_stay,
  // velo_plan_swap_stats, velo_recompute_layer, velo_recompute_call, what is known of profiles,
  // groups, topologies, shardings and sequence plans, the counters of pools, adaptors, executors,
  // regions and plans for recompute, and all of schedules and tunings but what is tried here, which
  // velo writes, and every args struct (tests/ops/every_operator/conformance_test.cpp).
  const std::string all = text(velo_describe);
  const std::size_t structs_end = all.find("\"operators\":");
  REQUIRE(structs_end != std::string::npos);
  int fields = 0;
  for (std::size_t at = 0; (at = all.find("\"name\":\"reserved\"", at)) < structs_end; ++at)
    ++fields;
  CHECK(fields == 53);
}
