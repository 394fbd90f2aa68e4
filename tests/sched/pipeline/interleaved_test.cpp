// Interleaved 1F1B: the order of a worked example, its formulas for many sizes, what it refuses.
#include "core/failure.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("a last group may be shorter than the others") {
  const sched::schedule order = made(VELO_SCHEDULE_INTERLEAVED, {2, 5, 2, 3});
  CHECK(row_of(order, 0) ==
        "0F0 0F1 0F2 2F0 2F1 2F2 2B0 0F3 2B1 0F4 2B2 2F3 0B0 2F4 0B1 0B2 2B3 2B4 0B3 0B4");
  CHECK(row_of(order, 1) ==
        "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1F3 1B0 1F4 1B1 3F3 1B2 3F4 3B3 3B4 1B3 1B4");
}

TEST_CASE("interleaving divides the bubble by the chunks, whatever the group") {
  const sched::costs costs{1, 1.2, 0.8};
  for (const std::int32_t ranks : {1, 2, 3, 4, 8}) {
    for (const std::int32_t chunks : {1, 2, 3, 4}) {
      for (const std::int32_t group : {ranks, ranks + 2, 2 * ranks}) {
        for (const std::int32_t extra : {0, 1}) {
          for (const std::int32_t microbatches :
               {group, 2 * group, 4 * group, group + ranks, 3 * group - 1}) {
            if (microbatches % group != 0 && microbatches % group < ranks) continue;
            CAPTURE(ranks, chunks, group, extra, microbatches);
            const auto order = made(VELO_SCHEDULE_INTERLEAVED,
                                    {ranks, microbatches, chunks, group,
                                     extra == 1 ? std::uint32_t{VELO_SCHEDULE_EXTRA_WARMUP} : 0});
            REQUIRE(violations_of(order).empty());
            const sched::timeline times = timed(order, costs);
            const auto whole = microbatches % group == 0;
            const double exact = (3.0 * microbatches * chunks + 3.0 * (ranks - 1)) / chunks;
            if (whole) CHECK(times.in_units(times.times.makespan()) == exact);
            for (std::int32_t r = 0; r < ranks && whole; ++r) {
              const std::int32_t held = std::min(
                  2 * (ranks - 1 - r) + (chunks - 1) * group + 1 + extra, microbatches * chunks);
              CHECK(times.times.ranks[r].peak == held);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("interleaved schedules have their golden values") {
  const sched::costs costs{18522, 18086, 9337};
  CHECK(price(made(VELO_SCHEDULE_INTERLEAVED, {8, 24, 2}), costs).makespan == 1263487.5);
  CHECK(price(made(VELO_SCHEDULE_INTERLEAVED, {8, 24, 4}), costs).makespan == 1183083.75);
  CHECK(price(made(VELO_SCHEDULE_INTERLEAVED, {8, 24, 2})).peak == 8 * (1 + 7.0 / 16));
}

TEST_CASE("with an extra warm-up a forward and the backward behind it can be one") {
  const sched::schedule order =
      made(VELO_SCHEDULE_INTERLEAVED, {2, 4, 2, 0, VELO_SCHEDULE_OVERLAP});
  CHECK(row_of(order, 1) ==
        "1F0 1F1 3F0 (3F1;3B0) (1F2;3B1) (1F3;1B0) (3F2;1B1) (3F3;3B2) 3B3 1B2 1B3");
  sched::costs costs;
  costs.fused = 2;  // two thirds of its parts
  for (const std::int32_t ranks : {1, 2, 3, 4, 8}) {
    for (const std::int32_t chunks : {1, 2, 3}) {
      for (const std::int32_t microbatches : {ranks, 2 * ranks, 4 * ranks, 3 * ranks + 1}) {
        CAPTURE(ranks, chunks, microbatches);
        const sizes of{ranks, microbatches, chunks, microbatches % ranks == 0 ? 0 : ranks + 1,
                       VELO_SCHEDULE_OVERLAP};
        if (microbatches % ranks != 0 && microbatches % (ranks + 1) != 0 &&
            microbatches % (ranks + 1) < ranks)
          continue;
        const sched::schedule fused = made(VELO_SCHEDULE_INTERLEAVED, of);
        CHECK(violations_of(fused).empty());
        sizes separate = of;
        separate.flags = VELO_SCHEDULE_EXTRA_WARMUP;
        const priced both = price(fused, costs);
        CHECK(both.makespan <= price(made(VELO_SCHEDULE_INTERLEAVED, separate)).makespan);
        CHECK(both.peak == price(made(VELO_SCHEDULE_INTERLEAVED, separate)).peak);
      }
    }
  }
}

TEST_CASE("groups that cannot work are refused by name") {
  const auto refused = [](const sizes& of) {
    return velo::testing::refused(VELO_SCHEDULE_INTERLEAVED, of);
  };
  CHECK(refused({4, 8, 2, 3}) == "desc.group");
  CHECK(refused({4, 8, 2, 9}) == "desc.group");
  CHECK(refused({4, 3, 2}) == "desc.microbatches");  // no group was named
  CHECK(refused({4, 9, 2, 6}) == "desc.microbatches");
  CHECK(refused({4, 8, 1025}) == "desc.chunks");
}
