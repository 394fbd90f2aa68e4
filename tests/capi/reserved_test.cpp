// Reserved fields, which must be 0 so that they can gain a meaning.
#include "tests/capi/values.hpp"

using namespace velo::testing;

namespace {

template <class Struct>
Struct reserving(Struct made) {
  made.reserved = 1;
  return made;
}

}  // namespace

TEST_CASE("what stands in a reserved field is refused, in every struct that has one") {
  live_context c;
  velo_allocator allocator{};
  allocator.struct_size = sizeof allocator;
  allocator.reserved = 1;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.allocator = &allocator;
  velo_context made = nullptr;
  CHECK_REFUSED(velo_context_create(&desc, &made), VELO_ERR_ARGUMENT, "desc.allocator.reserved");

  velo_pack_desc weight = VELO_PACK_DESC_INIT;
  weight.k = weight.n = 4;
  weight.reserved = 1;
  velo_pack pack = nullptr;
  CHECK_REFUSED(velo_pack_create(c, &weight, &pack), VELO_ERR_ARGUMENT, "desc.reserved");

  velo_kernel_desc foreign = reserving<velo_kernel_desc>(VELO_KERNEL_DESC_INIT);
  velo_kernel kernel = nullptr;
  CHECK_REFUSED(velo_kernel_register(c, &foreign, &kernel), VELO_ERR_ARGUMENT, "desc.reserved");

  velo_pool_desc memory = reserving<velo_pool_desc>(VELO_POOL_DESC_INIT);
  velo_pool pool = nullptr;
  CHECK_REFUSED(velo_pool_create(&memory, &pool), VELO_ERR_ARGUMENT, "desc.reserved");

  velo_plan_desc placed = reserving<velo_plan_desc>(VELO_PLAN_DESC_INIT);
  velo_plan plan = nullptr;
  CHECK_REFUSED(velo_plan_create(&placed, &plan), VELO_ERR_ARGUMENT, "desc.reserved");

  velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
  velo_recompute_budget budget = reserving<velo_recompute_budget>(VELO_RECOMPUTE_BUDGET_INIT);
  velo_recompute_choice choice = VELO_RECOMPUTE_CHOICE_INIT;
  CHECK_REFUSED(velo_recompute_choose(&rule, &budget, nullptr, 0, nullptr, &choice),
                VELO_ERR_ARGUMENT, "budget.reserved");

  velo_recompute_desc kept = reserving<velo_recompute_desc>(VELO_RECOMPUTE_DESC_INIT);
  velo_recompute recompute = nullptr;
  CHECK_REFUSED(velo_recompute_create(&kept, &recompute), VELO_ERR_ARGUMENT, "desc.reserved");

  velo_allocator below = VELO_ALLOCATOR_INIT;
  REQUIRE(velo_pool_create(nullptr, &pool) == VELO_OK);
  REQUIRE(velo_pool_allocator(pool, &below) == VELO_OK);
  kept.reserved = 0;
  kept.allocator = &below;
  REQUIRE(velo_recompute_create(&kept, &recompute) == VELO_OK);
  velo_recompute_region region = reserving<velo_recompute_region>(VELO_RECOMPUTE_REGION_INIT);
  std::int64_t index = 0;
  CHECK_REFUSED(velo_recompute_add(recompute, &region, nullptr, &index), VELO_ERR_ARGUMENT,
                "region.reserved");
  velo_recompute_destroy(recompute);
  velo_pool_destroy(pool);

  velo_recompute_plan steps = nullptr;
  REQUIRE(velo_recompute_plan_create(&steps) == VELO_OK);
  velo_recompute_plan_options options =
      reserving<velo_recompute_plan_options>(VELO_RECOMPUTE_PLAN_OPTIONS_INIT);
  CHECK_REFUSED(velo_recompute_plan_solve(steps, &options), VELO_ERR_ARGUMENT, "options.reserved");
  velo_recompute_plan_destroy(steps);

  velo_group_desc ranks = reserving<velo_group_desc>(VELO_GROUP_DESC_INIT);
  velo_group group = nullptr;
  CHECK_REFUSED(velo_group_create(c, &ranks, &group), VELO_ERR_ARGUMENT, "desc.reserved");
  velo_host_collectives table = reserving<velo_host_collectives>(VELO_HOST_COLLECTIVES_INIT);
  ranks = VELO_GROUP_DESC_INIT;
  ranks.transport = VELO_TRANSPORT_HOST;
  ranks.host = &table;
  CHECK_REFUSED(velo_group_create(c, &ranks, &group), VELO_ERR_ARGUMENT, "desc.host.reserved");

  velo_collective_desc barrier = reserving<velo_collective_desc>(VELO_COLLECTIVE_DESC_INIT);
  velo_collective collective = nullptr;
  REQUIRE(velo_group_create(c, nullptr, &group) == VELO_OK);
  CHECK_REFUSED(velo_collective_create(group, &barrier, &collective), VELO_ERR_ARGUMENT,
                "desc.reserved");

  velo_topology topology = nullptr;
  velo_topology_desc job = reserving<velo_topology_desc>(VELO_TOPOLOGY_DESC_INIT);
  CHECK_REFUSED(velo_topology_create(&job, &topology), VELO_ERR_ARGUMENT, "desc.reserved");

  velo_schedule_desc order = VELO_SCHEDULE_DESC_INIT;
  velo_schedule schedule = nullptr;
  REQUIRE(velo_schedule_create(&order, &schedule) == VELO_OK);
  velo_schedule_costs costs = reserving<velo_schedule_costs>(VELO_SCHEDULE_COSTS_INIT);
  velo_timeline timeline = nullptr;
  CHECK_REFUSED(velo_schedule_simulate(schedule, &costs, &timeline), VELO_ERR_ARGUMENT,
                "costs.reserved");

  velo_executor_validation late =
      reserving<velo_executor_validation>(VELO_EXECUTOR_VALIDATION_INIT);
  velo_executor_desc part = VELO_EXECUTOR_DESC_INIT;
  velo_executor executor = nullptr;
  part.validation = &late;
  REQUIRE(velo_schedule_read(schedule, VELO_SCHEDULE_CSV, "0F0,0B0\n", 8) == VELO_OK);
  CHECK_REFUSED(velo_executor_create(c, schedule, &part, &executor), VELO_ERR_ARGUMENT,
                "desc.validation.reserved");
  velo_schedule_destroy(schedule);

  velo_tune_desc search = reserving<velo_tune_desc>(VELO_TUNE_DESC_INIT);
  velo_tuning tuning = nullptr;
  CHECK_REFUSED(velo_tune(&search, &tuning), VELO_ERR_ARGUMENT, "desc.reserved");

  std::int64_t count = 0;
  velo_value value = integer(0);
  value.kind = VELO_VALUE_POINTER;
  value.as.p = &count;
  value.reserved = 1;
  CHECK_REFUSED(velo_invoke("velo_op_count", &value, 1, nullptr), VELO_ERR_ARGUMENT, "count");

  // These, velo_shape, velo_plan_buffer, velo_plan_stay, velo_plan_swap_stats,
  // velo_recompute_layer, velo_recompute_call, what is known of groups and topologies, the counters
  // of pools, adaptors, executors, regions and plans for recompute, and all of schedules and
  // tunings but what is tried here, which velo writes, and every args struct
  // (tests/ops/every_operator/conformance_test.cpp).
  const std::string all = text(
      [](char* b, std::uint64_t n, std::uint64_t* needed) { return velo_describe(b, n, needed); });
  const std::size_t structs_end = all.find("\"operators\":");
  REQUIRE(structs_end != std::string::npos);
  int fields = 0;
  for (std::size_t at = 0; (at = all.find("\"name\":\"reserved\"", at)) < structs_end; ++at)
    ++fields;
  CHECK(fields == 40);
}
