// Splits of sequences, and all micro-batches through one chunk before the next.
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("splits go forward in order and backward from the last") {
  // Micro-batch m's split k is unit 2 m + k.
  const sched::schedule order = made(VELO_SCHEDULE_SEQ1F1B, {2, 3, 0, 0, 0, 2});
  CHECK(row_of(order, 0) == "0F0 0F1 0F2 0B1 0F3 0B0 0F4 0B3 0F5 0B2 0B5 0B4");
  CHECK(row_of(order, 1) == "1F0 1F1 1B1 1F2 1B0 1F3 1B3 1F4 1B2 1F5 1B5 1B4");
  CHECK(order.sizes().splits == 2);
}

TEST_CASE("a rank holds P - r - 1 + S splits, each an S-th of a micro-batch") {
  for (const std::int32_t splits : {1, 2, 4}) {
    const sched::schedule order = made(VELO_SCHEDULE_SEQ1F1B, {4, 8, 0, 0, 0, splits});
    const sched::timeline times = timed(order);
    for (std::int32_t r = 0; r < 4; ++r) CHECK(times.times.ranks[r].peak == 4 - r - 1 + splits);
    CHECK(times.in_units(times.times.work()) == 24);
  }
  CHECK(price(made(VELO_SCHEDULE_SEQ1F1B, {4, 8, 0, 0, 0, 1})).makespan ==
        price(made(VELO_SCHEDULE_1F1B, {4, 8})).makespan);
  CHECK(price(made(VELO_SCHEDULE_SEQ1F1B, {4, 8, 0, 0, 0, 4})).makespan <
        price(made(VELO_SCHEDULE_1F1B, {4, 8})).makespan);
}

TEST_CASE("looped BFS takes all micro-batches through a chunk before the next") {
  const sched::schedule order = made(VELO_SCHEDULE_LOOPED_BFS, {2, 3, 2});
  CHECK(row_of(order, 0) == "0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2");
  for (const std::int32_t chunks : {1, 2, 4}) {
    for (std::int32_t ranks = 1; ranks <= 64; ranks *= 2) {
      const priced of = price(made(VELO_SCHEDULE_LOOPED_BFS, {ranks, 2 * ranks, chunks}));
      CHECK(of.makespan == 6 * ranks + 3.0 * (ranks - 1) / chunks);
      CHECK(of.peak == 2 * ranks);
    }
  }
}
