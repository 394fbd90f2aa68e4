// Recomputed and offloaded activations: their costs and savings, and the kinds of schedules that
// use them.
#include "sched/schedule/csv.hpp"
#include "tests/core/fails.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

std::size_t count_of(const sched::schedule& order, std::int32_t rank, velo_action_kind kind) {
  std::size_t count = 0;
  for (sched::row_reader row(order, rank); !row.done(); row.pass())
    count += row.next().kind == kind ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("activations made again take time and are held from then on") {
  const auto order = sched::read_csv("0F0,0F1,0RECOMPUTE0,0B0,0RECOMPUTE1,0B1\n");
  CHECK(price(order).makespan == 8);
  CHECK(price(order).peak == 1);
  sched::costs costs;
  costs.recompute = 0.5;
  costs.checkpoint = 0.25;
  CHECK(price(order, costs).makespan == 7);
  CHECK(price(order, costs).peak == 1.25);
}

TEST_CASE("activations are let go in part behind I") {
  sched::costs costs;
  costs.pending = 0.3;
  const auto order = sched::read_csv("0F0,0I0,0F1,0I1,0W0,0W1\n");
  CHECK(price(order, costs).peak == 1.3);
  CHECK(price(order).peak == 2);
}

TEST_CASE("copies run beside what is computed, and who needs them waits") {
  const auto order = sched::read_csv("0F0,0OFFLOAD0,0F1,0F2,0RELOAD0,0B1,0B0,0B2\n");
  sched::costs costs;
  costs.offload = 1.5, costs.reload = 3;
  const sched::timeline times = timed(order, costs);
  // F0 to 1; away by 2.5; F1, F2 to 3; back from 3 to 6; B1 to 5, B0 from 6 to 8, B2 to 10.
  CHECK(times.in_units(times.times.makespan()) == 10);
  CHECK(times.in_microbatches(times.times.ranks[0].peak) == 3);
  CHECK(times.in_microbatches(times.times.ranks[0].host_peak) == 1);
  costs.offload = 0, costs.reload = 0;
  CHECK(price(order, costs).makespan == 9);
  // Held: F0; F1 and F2 while F0 is away, and back with B1.
  CHECK(price(sched::read_csv("0F0,0OFFLOAD0,0F1,0B1,0RELOAD0,0B0\n"), costs).peak == 1);
}

TEST_CASE("collectives run beside, one after another, and updates wait for them") {
  const auto order = sched::read_csv(
      "0UNSHARD,1UNSHARD,0F0,1F0,1B0,1REDUCE_GRAD,0B0,0REDUCE_GRAD,0OPTIMIZER,1OPTIMIZER\n");
  sched::costs costs;
  CHECK(price(order, costs).makespan == 3);
  costs.gather = 1, costs.reduce = 4, costs.optimizer = 0.5;
  // Stage 0 is there at 0.5, stage 1 at 1: computes until 3.5; 1 is reduced from 2.5 to 4.5, 0 to
  // 6.5.
  CHECK(price(order, costs).makespan == 7);
}

TEST_CASE("messages of one way wait behind each other") {
  const auto order = sched::read_csv("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  sched::costs costs;
  costs.transfer = 3, costs.latency = 0.5;
  // F0 is sent from 1 to 4, F1 to 7, and there at 7.5; B0 ends at 10.5, its gradient is there at
  // 14, the other at 17.
  CHECK(price(order, costs).makespan == 19);
}

TEST_CASE("nano-pipe puts off as many W as a rank warms up less than the first") {
  const sched::schedule order = made(VELO_SCHEDULE_NANOPIPE, {4, 8});
  CHECK(count_of(order, 0, VELO_ACTION_I) == 0);
  CHECK(count_of(order, 3, VELO_ACTION_I) == 6);
  CHECK(row_of(order, 3) ==
        "3F0 3F1 3F2 3F3 7F0 7I0 7F1 7I1 7F2 7I2 7F3 7I3 3F4 3I0 3F5 3I1 3F6 3B2 3F7 3B3 7F4 7B4 "
        "7F5 7B5 7F6 7B6 7F7 7B7 3B4 3B5 3B6 3B7 7W0 7W1 7W2 7W3 3W0 3W1");
  for (const std::int32_t ranks : {3, 4, 8})
    for (const std::int32_t chunks : {2, 3})
      CHECK(price(made(VELO_SCHEDULE_NANOPIPE, {ranks, 2 * ranks, chunks})).makespan <
            price(made(VELO_SCHEDULE_INTERLEAVED, {ranks, 2 * ranks, chunks})).makespan);
}

TEST_CASE("nano-pipe has what W wait with on the host") {
  const sched::schedule order = made(VELO_SCHEDULE_NANOPIPE, {4, 16, 2, 0, VELO_SCHEDULE_SWAP});
  sched::costs costs;
  costs.offload = costs.reload = 0.25;
  const sched::timeline there = timed(made(VELO_SCHEDULE_NANOPIPE, {4, 16}), costs);
  const sched::timeline away = timed(order, costs);
  for (std::size_t rank = 1; rank < 4; ++rank) {
    CHECK(count_of(order, static_cast<std::int32_t>(rank), VELO_ACTION_OFFLOAD) == 2 * rank);
    CHECK(away.times.ranks[rank].host_peak == static_cast<std::int64_t>(2 * rank));
    CHECK(away.times.ranks[rank].peak < there.times.ranks[rank].peak);
  }
  CHECK(away.times.makespan() == there.times.makespan());
}

TEST_CASE("ripipe makes again in the bubble what is more than P V stages") {
  const sched::schedule order = made(VELO_SCHEDULE_RIPIPE, {4, 16});
  CHECK(count_of(order, 0, VELO_ACTION_RECOMPUTE) == 3 + 3 + 1);
  CHECK(count_of(order, 2, VELO_ACTION_RECOMPUTE) == 0);
  CHECK(count_of(order, 3, VELO_ACTION_RECOMPUTE) == 0);
  for (const std::int32_t ranks : {2, 3, 4, 8, 12}) {
    for (const std::int32_t chunks : {2, 3, 4}) {
      for (std::int32_t groups = 1; groups <= 6; ++groups) {
        CAPTURE(ranks, chunks, groups);
        const sizes of{ranks, groups * ranks, chunks};
        const sched::timeline times = timed(made(VELO_SCHEDULE_RIPIPE, of));
        for (const sched::rank_times& rank : times.times.ranks)
          CHECK(rank.peak <= std::max(ranks * chunks, groups == 1 ? 2 * ranks * chunks : 0));
      }
    }
  }
}

TEST_CASE("ripipe in advance makes all again but what the last stage has just made") {
  const sizes of{4, 8, 2, 0, VELO_SCHEDULE_IN_ADVANCE};
  const sched::schedule order = made(VELO_SCHEDULE_RIPIPE, of);
  CHECK(count_of(order, 0, VELO_ACTION_RECOMPUTE) == 16);
  CHECK(count_of(order, 3, VELO_ACTION_RECOMPUTE) == 8);
  CHECK(price(order).peak <= 2 / 2.0);
  CHECK(failure_of([] { made(VELO_SCHEDULE_RIPIPE, {4, 9}); }).argument == "desc.microbatches");
}
