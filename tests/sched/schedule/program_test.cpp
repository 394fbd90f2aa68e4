// Reading any action of a closed form gives the same as reading from the beginning.
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("reading from any place gives what reading through gives") {
  const sched::schedule orders[] = {made(VELO_SCHEDULE_GPIPE, {3, 4}),
                                    made(VELO_SCHEDULE_1F1B, {5, 3}),
                                    made(VELO_SCHEDULE_1F1B, {4, 9}),
                                    made(VELO_SCHEDULE_INTERLEAVED, {3, 11, 3, 4}),
                                    made(VELO_SCHEDULE_INTERLEAVED, {2, 5, 2, 3, 1}),
                                    made(VELO_SCHEDULE_ZB1P, {3, 6, 2}),
                                    made(VELO_SCHEDULE_ZBH1, {5, 3}),
                                    made(VELO_SCHEDULE_ZBV, {3, 7}),
                                    made(VELO_SCHEDULE_ZBV, {4, 2}),
                                    made(VELO_SCHEDULE_DUALPIPEV, {4, 8}),
                                    made(VELO_SCHEDULE_DUALPIPEV, {3, 6, 0, 0, 2}),
                                    made(VELO_SCHEDULE_SEQ1F1B, {3, 3, 0, 0, 0, 3}),
                                    made(VELO_SCHEDULE_NANOPIPE, {3, 9}),
                                    made(VELO_SCHEDULE_NANOPIPE, {3, 6, 0, 0, 16}),
                                    made(VELO_SCHEDULE_INTERLEAVED, {3, 6, 2, 0, 4}),
                                    made(VELO_SCHEDULE_VHALF, {3, 5})};
  for (const sched::schedule& order : orders) {
    for (std::int32_t rank = 0; rank < order.sizes().ranks; ++rank) {
      const std::int64_t length = order.length(rank);
      std::vector<sched::action> all(length);
      order.read(rank, 0, length, all.data());
      for (std::int64_t first = 0; first <= length; ++first) {
        for (std::int64_t count = 0; count <= length - first; ++count) {
          std::vector<sched::action> part(count + 1, sched::make_action(99, 0, 0));
          order.read(rank, first, count, part.data());
          const bool same =
              std::equal(part.begin(), part.end() - 1, all.begin() + first, sched::same);
          if (!same || part.back().kind != 99) FAIL("rank " << rank << ", action " << first);
        }
      }
    }
  }
}

TEST_CASE("a schedule of millions of actions is made at once, and read anywhere") {
  const sched::schedule order = made(VELO_SCHEDULE_INTERLEAVED, {1024, 4096, 4});
  CHECK(order.actions() == 1024LL * 4096 * 4 * 2);
  sched::action last{};
  order.read(1023, order.length(1023) - 1, 1, &last);
  CHECK(sched::text_of(last) == "1023B4095");
}

TEST_CASE("what no memory could hold is refused") {
  const auto refused = [](const sizes& of) {
    return velo::testing::refused(VELO_SCHEDULE_1F1B, of);
  };
  CHECK(refused({65536, 4096}) == "desc.microbatches");
  CHECK(refused({65537, 1}) == "desc.ranks");
  CHECK(refused({2, 1 << 25}) == "desc.microbatches");
  CHECK(refused({0, 1}) == "desc.ranks");
  CHECK(refused({1, -1}) == "desc.microbatches");
}
