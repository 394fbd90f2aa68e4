// 1F1B and GPipe: their order, and bubbles and peaks as published, exactly.
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("GPipe does all forwards, then all backwards") {
  const sched::schedule order = made(VELO_SCHEDULE_GPIPE, {2, 3});
  CHECK(row_of(order, 0) == "0F0 0F1 0F2 0B0 0B1 0B2");
  CHECK(row_of(order, 1) == "1F0 1F1 1F2 1B0 1B1 1B2");
}

TEST_CASE("1F1B warms up with one forward for every rank behind") {
  const sched::schedule order = made(VELO_SCHEDULE_1F1B, {3, 4});
  CHECK(row_of(order, 0) == "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  CHECK(row_of(order, 1) == "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3");
  CHECK(row_of(order, 2) == "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3");
  const sched::schedule few = made(VELO_SCHEDULE_1F1B, {4, 2});
  CHECK(row_of(few, 0) == "0F0 0F1 0B0 0B1");
}

TEST_CASE("GPipe's and 1F1B's bubble and peaks are the formulas'") {
  for (std::int32_t ranks = 1; ranks <= 64; ranks = ranks < 8 ? ranks + 1 : ranks * 2) {
    for (const std::int32_t microbatches : {1, ranks - 1, ranks, ranks + 1, 3 * ranks}) {
      if (microbatches < 1) continue;
      CAPTURE(ranks, microbatches);
      const sched::costs costs{1, 1.2, 0.8};
      const double bubble = 3 * (ranks - 1), work = 3 * microbatches;
      const auto pipe = made(VELO_SCHEDULE_GPIPE, {ranks, microbatches});
      CHECK(violations_of(pipe).empty());
      CHECK(price(pipe, costs).makespan == work + bubble);
      CHECK(price(pipe, costs).peak == microbatches);
      const auto alternating = made(VELO_SCHEDULE_1F1B, {ranks, microbatches});
      CHECK(violations_of(alternating).empty());
      CHECK(price(alternating, costs).makespan == work + bubble);
      CHECK(price(alternating, costs).work == work);
      const sched::timeline times = timed(alternating, costs);
      for (std::int32_t r = 0; r < ranks; ++r)
        CHECK(times.in_microbatches(times.times.ranks[r].peak) ==
              std::min(microbatches, ranks - r));
    }
  }
}

TEST_CASE("1F1B has its golden values") {
  struct row {
    std::int32_t ranks, microbatches;
    double makespan, peak, sigma;
  };
  for (const row& g :
       {row{2, 4, 15, 2, 3}, row{2, 8, 27, 2, 3}, row{4, 8, 33, 4, 9}, row{4, 12, 45, 4, 9},
        row{4, 16, 57, 4, 9}, row{6, 12, 51, 6, 15}, row{8, 16, 69, 8, 21}, row{8, 24, 93, 8, 21},
        row{8, 32, 117, 8, 21}, row{8, 64, 213, 8, 21}, row{12, 24, 105, 12, 33},
        row{16, 32, 141, 16, 45}}) {
    CAPTURE(g.ranks, g.microbatches);
    const priced found = price(made(VELO_SCHEDULE_1F1B, {g.ranks, g.microbatches}));
    CHECK(found.makespan == g.makespan);
    CHECK(found.peak == g.peak);
    CHECK(found.sigma == g.sigma);
  }
  const auto order = made(VELO_SCHEDULE_1F1B, {8, 24});
  CHECK(price(order, {18522, 18086, 9337}).makespan == 1424295);
  CHECK(price(order, {18522, 18086, 9337}).work == 1102680);
  CHECK(price(order, {1, 1.2, 0.8}).makespan == 93);
}
