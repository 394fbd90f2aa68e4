// DualPipeV and DualPipe: orders of worked examples, one against the other, what fusing gains.
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("DualPipeV has the order of DeepSeek's steps") {
  const sched::schedule two = made(VELO_SCHEDULE_DUALPIPEV, {2, 4});
  CHECK(row_of(two, 0) ==
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1) (3F2;0B0) 3B2 (3F3;0B1) 3B3 0I2 0W2 0I3 0W3");
  CHECK(row_of(two, 1) ==
        "1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0) (1F3;2B1) (2F3;1B1) 2B2 1B2 2I3 1I3 2W3 1W3");
  const sched::schedule three = made(VELO_SCHEDULE_DUALPIPEV, {3, 6});
  CHECK(row_of(three, 1) ==
        "1F0 1F1 1F2 4F0 1F3 4F1 4I0 4W0 4F2 (1F4;4B1) (4F3;1B0) (1F5;4B2) (4F4;1B1) 4B3 "
        "(4F5;1B2) 4B4 1B3 4I5 1I4 4W5 1I5 1W4 1W5");
  CHECK(row_of(three, 2) ==
        "2F0 3F0 2F1 3F1 2F2 3F2 2F3 3B0 (3F3;2B0) (2F4;3B1) (3F4;2B1) (2F5;3B2) (3F5;2B2) 3B3 "
        "2B3 3B4 2I4 3I5 2I5 2W4 3W5 2W5");
}

TEST_CASE("DualPipe's ranks are DualPipeV's of half of them, from both ends") {
  for (const std::int32_t ranks : {2, 4, 6, 8, 16}) {
    for (const std::int32_t microbatches : {2 * ranks, 2 * ranks + 2, 3 * ranks, 5 * ranks}) {
      for (const std::uint32_t flags : {0u, std::uint32_t{VELO_SCHEDULE_NO_DW_DETACH}}) {
        CAPTURE(ranks, microbatches, flags);
        const auto both = made(VELO_SCHEDULE_DUALPIPE, {ranks, microbatches, 0, 0, flags});
        const auto half = made(VELO_SCHEDULE_DUALPIPEV, {ranks / 2, microbatches / 2, 0, 0, flags});
        CHECK(violations_of(both).empty());
        for (std::int32_t rank = 0; rank < ranks; ++rank) {
          const std::int32_t other = std::min(rank, ranks - 1 - rank);
          REQUIRE(both.length(rank) == half.length(other));
          // Its own direction's stages on the way down, the other's on the way up.
          const auto renamed = [&](std::int32_t stage) {
            if (stage < 0) return stage;
            const bool first = (stage < ranks / 2) == (rank < ranks / 2);
            return first ? stage : ranks + stage;
          };
          for (sched::row_reader a(both, rank), b(half, other); !a.done(); a.pass(), b.pass()) {
            sched::action wanted = b.next();
            wanted.stage = renamed(wanted.stage);
            wanted.other_stage = renamed(wanted.other_stage);
            if (!sched::same(a.next(), wanted))
              FAIL("rank " << rank << ": " << sched::text_of(a.next()) << ", not "
                           << sched::text_of(wanted));
          }
        }
      }
    }
  }
}

TEST_CASE("what a rank of DualPipeV idles falls with what a fused pair takes") {
  for (const std::int32_t ranks : {1, 2, 4, 8, 16}) {
    for (const double fused : {3.0, 2.5, 2.0}) {
      CAPTURE(ranks, fused);
      const sched::costs costs{1, 1, 1, fused, 0};
      const auto of = [&](std::uint32_t flags) {
        return price(made(VELO_SCHEDULE_DUALPIPEV, {ranks, 3 * ranks, 0, 0, flags}), costs);
      };
      CHECK(of(0).makespan - of(0).work == (ranks - 1) * (fused + 2 - 3) / 2);
      CHECK(of(0).peak == ranks + 0.5);
      const priced whole = of(VELO_SCHEDULE_NO_DW_DETACH);
      CHECK(whole.makespan - whole.work == (ranks - 1) * (fused + 2 - 1) / 2);
    }
  }
}

TEST_CASE("DualPipe idles as its formula says and holds P + 1") {
  for (const std::int32_t ranks : {2, 4, 8, 16}) {
    const priced of = price(made(VELO_SCHEDULE_DUALPIPE, {ranks, 4 * ranks}));
    CAPTURE(ranks);
    const std::int32_t pairs = ranks / 2;
    CHECK(of.sigma == (pairs - 1) * (3 + 2 - 3));
    CHECK(of.peak == ranks + 1);
    CHECK(of.work == 12 * ranks);
  }
}

TEST_CASE("DualPipeV runs from 2P - 1 micro-batches on, DualPipe from 2P, both numbers even") {
  CHECK(violations_of(made(VELO_SCHEDULE_DUALPIPEV, {5, 9})).empty());
  CHECK(violations_of(made(VELO_SCHEDULE_DUALPIPEV, {1, 1})).empty());
  CHECK(refused(VELO_SCHEDULE_DUALPIPEV, {5, 8}) == "desc.microbatches");
  CHECK(refused(VELO_SCHEDULE_DUALPIPE, {5, 20}) == "desc.ranks");
  CHECK(refused(VELO_SCHEDULE_DUALPIPE, {4, 6}) == "desc.microbatches");
  CHECK(refused(VELO_SCHEDULE_DUALPIPE, {4, 9}) == "desc.microbatches");
}
