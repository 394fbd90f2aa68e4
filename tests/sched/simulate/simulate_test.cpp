// Times: exact for decimal costs, with messages, with fused pairs; no rank twice at a time.
#include "sched/simulate/simulate.hpp"

#include "sched/schedule/csv.hpp"
#include "sched/simulate/in_order.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("decimal costs add up exactly") {
  // 30 tenths in doubles are not 3: the sum of 4 x 3 x 0.1 + 3 x 3 x 0.1 is.
  const auto order = made(VELO_SCHEDULE_1F1B, {4, 4});
  CHECK(price(order, {0.1, 0.1, 0.1}).makespan == 2.1);
  CHECK(price(order, {1e-7, 1e-7, 1e-7}).makespan == 2.1e-6);
  CHECK(price(order, {1e15, 1e15, 1e15}).makespan == 2.1e16);
  CHECK(price(order, {1, 1e-3, 0}).makespan == 7.007);
  CHECK(price(order, {0, 0, 0}).makespan == 0);
}

TEST_CASE("measured costs of many digits are as good as doubles") {
  const auto order = made(VELO_SCHEDULE_1F1B, {4, 100});
  const double f = 0.0012345678901234, i = 1.0 / 3, w = 2.7182818284590452;
  CHECK(price(order, {f, i, w}).makespan == Approx(103 * (f + i + w)).epsilon(1e-12));
  CHECK(price(order, {1e18, 1e-18, 1e18}).makespan == Approx(103 * 2e18).epsilon(1e-12));
}

TEST_CASE("messages take their time between ranks and none inside one") {
  const auto order = sched::read_csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  sched::costs costs;
  costs.latency = 0.25;
  CHECK(price(order, costs).makespan == 1 + 0.25 + 1 + 2 + 1 + 2 + 0.25 + 2);
  const auto alone = sched::read_csv("0F0,1F0,1B0,0B0\n");
  CHECK(price(alone, costs).makespan == 0.5 + 0.5 + 1 + 1);
}

TEST_CASE("a fused pair waits for both inputs and has its own cost") {
  const auto order = sched::read_csv("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n");
  CHECK(price(order).makespan == 9);
  sched::costs cheaper;
  cheaper.fused = 2.5;
  CHECK(price(order, cheaper).makespan == 8.5);
  CHECK(price(order, cheaper).work == 5.5);
  CHECK(price(order, cheaper).peak == 2);
}

TEST_CASE("units in their order and units in any have the same times") {
  const sched::costs costs{1, 1.2, 0.8, 2.5, 0.1};
  for_each_schedule(6, [&](velo_schedule_kind kind, const sizes& of, const sched::schedule& order) {
    const sched::ticks scale = sched::ticks_of(costs, order.sizes(), order.actions());
    std::vector<sched::stuck_rank> stuck;
    sched::simulation fast;
    const bool ordinary = sched::simulate_in_order(order, scale, stuck, fast);
    CHECK(ordinary == (of.splits < 2 && !order.has(sched::set_of(VELO_ACTION_OFFLOAD)) &&
                       !order.has(sched::set_of(VELO_ACTION_RECOMPUTE))));
    if (!ordinary) return;
    CHECK(stuck.empty());
    sched::spans spans;  // asks for the other way
    const sched::simulation other = sched::simulate(order, scale, stuck, &spans);
    for (std::size_t rank = 0; rank < other.ranks.size(); ++rank) {
      const sched::rank_times &a = fast.ranks[rank], &b = other.ranks[rank];
      if (a.first != b.first || a.last != b.last || a.work != b.work || a.peak != b.peak)
        FAIL("kind " << kind << ", rank " << rank << " of " << of.ranks);
    }
  });
}

TEST_CASE("ranks that wait for ever do so at the same actions either way") {
  for (const char* rows : {"0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n",
                           "0F0,2F1,0F1,2F0,2B0,2B1,0B0,0B1\n1F0,3F0,1F1,3F1,3B0,3B1,1B0,1B1\n",
                           "2F0,2B0\n", "0F0,0B0\n2F0,2B0\n", "0F0,0B0\n1F0,0F1,1B0,0B1\n"}) {
    const sched::schedule order = sched::read_csv(rows);
    std::vector<sched::stuck_rank> one, other;
    sched::spans spans;
    sched::simulate(order, sched::ticks{}, one);
    sched::simulate(order, sched::ticks{}, other, &spans);
    REQUIRE(one.size() == other.size());
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].index == other[i].index);
  }
}

TEST_CASE("spans of a rank do not overlap and fill its work") {
  const auto order = made(VELO_SCHEDULE_INTERLEAVED, {3, 7, 2, 4});
  std::vector<sched::stuck_rank> stuck;
  sched::spans spans;
  const sched::ticks scale =
      sched::ticks_of({1, 1.2, 0.8, -1, 0.1}, order.sizes(), order.actions());
  const sched::simulation found = sched::simulate(order, scale, stuck, &spans);
  REQUIRE(stuck.empty());
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    REQUIRE(static_cast<std::int64_t>(spans[rank].size()) == order.length(rank));
    std::int64_t clock = 0, busy = 0;
    for (const sched::span& s : spans[rank]) {
      CHECK(s.begin >= clock);
      busy += s.end - s.begin;
      clock = s.end;
    }
    CHECK(busy == found.ranks[rank].work);
    CHECK(clock == found.ranks[rank].last);
  }
}
