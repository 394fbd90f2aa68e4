// Reserved fields, which must be 0 so that they can gain a meaning.
#include "capi/fixture.hpp"

using namespace fixture;

TEST_CASE("what stands in a reserved field is refused, in every struct that has one") {
  context c;
  velo_allocator allocator{};
  allocator.struct_size = sizeof allocator;
  allocator.reserved = 1;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.allocator = &allocator;
  velo_context made = nullptr;
  CHECK(velo_context_create(&desc, &made) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.allocator.reserved");

  velo_pack_desc weight = VELO_PACK_DESC_INIT;
  weight.k = weight.n = 4;
  weight.reserved = 1;
  velo_pack pack = nullptr;
  CHECK(velo_pack_create(c.handle, &weight, &pack) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");

  velo_kernel_desc foreign = VELO_KERNEL_DESC_INIT;
  foreign.reserved = 1;
  velo_kernel kernel = nullptr;
  CHECK(velo_kernel_register(c.handle, &foreign, &kernel) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");

  velo_pool_desc memory = VELO_POOL_DESC_INIT;
  memory.reserved = 1;
  velo_pool pool = nullptr;
  CHECK(velo_pool_create(&memory, &pool) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");

  velo_plan_desc placed = VELO_PLAN_DESC_INIT;
  placed.reserved = 1;
  velo_plan plan = nullptr;
  CHECK(velo_plan_create(&placed, &plan) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");

  velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
  velo_recompute_budget budget = VELO_RECOMPUTE_BUDGET_INIT;
  velo_recompute_choice choice = VELO_RECOMPUTE_CHOICE_INIT;
  budget.reserved = 1;
  CHECK(velo_recompute_choose(&rule, &budget, nullptr, 0, nullptr, &choice) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "budget.reserved");

  velo_recompute_desc kept = VELO_RECOMPUTE_DESC_INIT;
  kept.reserved = 1;
  velo_recompute recompute = nullptr;
  CHECK(velo_recompute_create(&kept, &recompute) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");

  velo_allocator below = VELO_ALLOCATOR_INIT;
  REQUIRE(velo_pool_create(nullptr, &pool) == VELO_OK);
  REQUIRE(velo_pool_allocator(pool, &below) == VELO_OK);
  kept.reserved = 0;
  kept.allocator = &below;
  REQUIRE(velo_recompute_create(&kept, &recompute) == VELO_OK);
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  region.reserved = 1;
  std::int64_t index = 0;
  CHECK(velo_recompute_add(recompute, &region, nullptr, &index) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "region.reserved");
  velo_recompute_destroy(recompute);
  velo_pool_destroy(pool);

  velo_recompute_plan steps = nullptr;
  REQUIRE(velo_recompute_plan_create(&steps) == VELO_OK);
  velo_recompute_plan_options options = VELO_RECOMPUTE_PLAN_OPTIONS_INIT;
  options.reserved = 1;
  CHECK(velo_recompute_plan_solve(steps, &options) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "options.reserved");
  velo_recompute_plan_destroy(steps);

  velo_group_desc ranks = VELO_GROUP_DESC_INIT;
  ranks.reserved = 1;
  velo_group group = nullptr;
  CHECK(velo_group_create(c.handle, &ranks, &group) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");
  velo_host_collectives table = VELO_HOST_COLLECTIVES_INIT;
  table.reserved = 1;
  ranks = VELO_GROUP_DESC_INIT;
  ranks.transport = VELO_TRANSPORT_HOST;
  ranks.host = &table;
  CHECK(velo_group_create(c.handle, &ranks, &group) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.host.reserved");

  velo_collective_desc barrier = VELO_COLLECTIVE_DESC_INIT;
  barrier.reserved = 1;
  velo_collective collective = nullptr;
  REQUIRE(velo_group_create(c.handle, nullptr, &group) == VELO_OK);
  CHECK(velo_collective_create(group, &barrier, &collective) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");

  velo_topology topology = nullptr;
  velo_topology_desc job = VELO_TOPOLOGY_DESC_INIT;
  job.reserved = 1;
  CHECK(velo_topology_create(&job, &topology) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");

  velo_schedule_desc order = VELO_SCHEDULE_DESC_INIT;
  velo_schedule schedule = nullptr;
  REQUIRE(velo_schedule_create(&order, &schedule) == VELO_OK);
  velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT;
  velo_timeline timeline = nullptr;
  costs.reserved = 1;
  CHECK(velo_schedule_simulate(schedule, &costs, &timeline) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "costs.reserved");

  velo_executor_validation late = VELO_EXECUTOR_VALIDATION_INIT;
  velo_executor_desc part = VELO_EXECUTOR_DESC_INIT;
  velo_executor executor = nullptr;
  late.reserved = 1;
  part.validation = &late;
  REQUIRE(velo_schedule_read(schedule, VELO_SCHEDULE_CSV, "0F0,0B0\n", 8) == VELO_OK);
  CHECK(velo_executor_create(c.handle, schedule, &part, &executor) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.validation.reserved");
  velo_schedule_destroy(schedule);

  velo_tune_desc search = VELO_TUNE_DESC_INIT;
  velo_tuning tuning = nullptr;
  search.reserved = 1;
  CHECK(velo_tune(&search, &tuning) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "desc.reserved");

  std::int64_t count = 0;
  velo_value value = integer(0);
  value.kind = VELO_VALUE_POINTER;
  value.as.p = &count;
  value.reserved = 1;
  CHECK(velo_invoke("velo_op_count", &value, 1, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(last().argument == "count");

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
