// Schedules and timelines through their C entries: what they take, give and refuse.
#include <cmath>

#include "tests/record.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("an empty schedule has nothing, and nothing wrong") {
  const live_schedule empty;
  velo_schedule_info info = VELO_SCHEDULE_INFO_INIT;
  REQUIRE(velo_schedule_get_info(empty, &info) == VELO_OK);
  CHECK(info.ranks + info.stages + info.microbatches == 0);
  std::int64_t count = -1;
  REQUIRE(velo_schedule_check(empty, &count) == VELO_OK);
  CHECK(count == 0);
  CHECK(velo_schedule_get_length(empty, 0, &count) == VELO_ERR_ARGUMENT);
  velo_timeline times = nullptr;
  REQUIRE(velo_schedule_simulate(empty, nullptr, &times) == VELO_OK);
  velo_timeline_stats stats = VELO_TIMELINE_STATS_INIT;
  REQUIRE(velo_timeline_get_stats(times, &stats) == VELO_OK);
  CHECK(stats.makespan == 0);
  velo_timeline_destroy(times);
}

TEST_CASE("a text that is refused leaves the schedule and its verdict") {
  const live_schedule order(VELO_SCHEDULE_1F1B, {2, 2});
  std::int64_t count = -1;
  REQUIRE(velo_schedule_check(order, &count) == VELO_OK);
  CHECK_REFUSED(order.read("0F0,nonsense\n"), VELO_ERR_ARGUMENT, "text, line 1, column 5");
  velo_schedule_info info = VELO_SCHEDULE_INFO_INIT;
  REQUIRE(velo_schedule_get_info(order, &info) == VELO_OK);
  CHECK(info.kind == VELO_SCHEDULE_1F1B);
  CHECK(info.actions == 8);
}

TEST_CASE("another text ends what was found in the one before") {
  const live_schedule order;
  velo_violation found = VELO_VIOLATION_INIT;
  CHECK(velo_schedule_get_violation(order, 0, &found) == VELO_ERR_STATE);
  REQUIRE(order.read("0F0\n") == VELO_OK);
  std::int64_t count = 0;
  REQUIRE(velo_schedule_check(order, &count) == VELO_OK);
  REQUIRE(count == 1);
  CHECK(velo_schedule_get_violation(order, 1, &found) == VELO_ERR_ARGUMENT);
  REQUIRE(velo_schedule_get_violation(order, 0, &found) == VELO_OK);
  CHECK(std::string(found.reason) == "0B0 is missing");
  REQUIRE(order.read("0F0,0B0\n") == VELO_OK);
  CHECK(velo_schedule_get_violation(order, 0, &found) == VELO_ERR_STATE);
}

TEST_CASE("places outside of a row are refused") {
  const live_schedule order(VELO_SCHEDULE_1F1B, {2, 2});
  velo_action action = {};
  CHECK(velo_schedule_get_actions(order, 2, 0, 1, &action) == VELO_ERR_ARGUMENT);
  CHECK(velo_schedule_get_actions(order, -1, 0, 1, &action) == VELO_ERR_ARGUMENT);
  CHECK(velo_schedule_get_actions(order, 0, -1, 1, &action) == VELO_ERR_ARGUMENT);
  CHECK(velo_schedule_get_actions(order, 0, 4, 1, &action) == VELO_ERR_ARGUMENT);
  CHECK(velo_schedule_get_actions(order, 0, 0, 5, &action) == VELO_ERR_ARGUMENT);
  CHECK(velo_schedule_get_actions(order, 0, 0, -1, &action) == VELO_ERR_ARGUMENT);
  CHECK(velo_schedule_get_actions(order, 0, 4, 0, &action) == VELO_OK);
  CHECK(velo_schedule_get_actions(order, 0, 3, 1, &action) == VELO_OK);
}

TEST_CASE("descriptions and costs that make no sense are refused by name") {
  const auto refused = [](velo_schedule_desc desc) {
    velo_schedule none = nullptr;
    CHECK(velo_schedule_create(&desc, &none) == VELO_ERR_ARGUMENT);
    CHECK(none == nullptr);
    return last_record().argument;
  };
  CHECK(refused(desc_of(99, {2, 2})) == "desc.kind");
  CHECK(refused(desc_of(-1, {2, 2})) == "desc.kind");
  CHECK(refused(desc_of(VELO_SCHEDULE_CUSTOM, {2, 0})) == "desc.ranks");
  CHECK(refused(desc_of(VELO_SCHEDULE_CUSTOM, {0, 2})) == "desc.microbatches");
  CHECK(refused(desc_of(VELO_SCHEDULE_1F1B, {2, 2, 2})) == "desc.chunks");
  CHECK(refused(desc_of(VELO_SCHEDULE_1F1B, {2, 2, 0, 2})) == "desc.group");
  CHECK(refused(desc_of(VELO_SCHEDULE_1F1B, {2, 2, 0, 0, 1})) == "desc.flags");
  CHECK(refused(desc_of(VELO_SCHEDULE_INTERLEAVED, {2, 2, 0, 0, 1u << 31})) == "desc.flags");

  const live_schedule order(VELO_SCHEDULE_1F1B, {2, 2});
  for (const double cost : {-1.0, std::nan(""), double{INFINITY}, 1e19}) {
    velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT;
    costs.weight = cost;
    velo_timeline none = nullptr;
    CHECK_REFUSED(velo_schedule_simulate(order, &costs, &none), VELO_ERR_ARGUMENT, "costs.weight");
    costs = VELO_SCHEDULE_COSTS_INIT;
    costs.fused = cost == -1 ? -0.5 : cost;
    CHECK_REFUSED(velo_schedule_simulate(order, &costs, &none), VELO_ERR_ARGUMENT, "costs.fused");
    CHECK(none == nullptr);
  }
}
