// What holds for every kind: nothing is wrong with any, from one rank to twelve.
#include "tests/sched/schedules.hpp"

using namespace velo;
using test::made;

namespace {

// Every size for which a kind has a schedule, up to 12 ranks, 3 P micro-batches, 4 chunks.
template <class Body>
void for_each_schedule(Body&& body) {
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE; kind <= VELO_SCHEDULE_SEQ1F1B; ++kind) {
    for (std::int32_t ranks = 1; ranks <= 12; ++ranks) {
      for (std::int32_t microbatches = 1; microbatches <= 3 * ranks; ++microbatches) {
        for (std::int32_t variant = 1; variant <= 4; ++variant) {
          test::sizes of{ranks, microbatches};
          if (kind == VELO_SCHEDULE_INTERLEAVED || kind == VELO_SCHEDULE_LOOPED_BFS ||
              kind == VELO_SCHEDULE_ZB1P)
            of.chunks = variant;
          else if (kind == VELO_SCHEDULE_SEQ1F1B)
            of.splits = variant;
          else if (kind >= VELO_SCHEDULE_DUALPIPE && variant == 2)
            of.flags = VELO_SCHEDULE_NO_DW_DETACH;
          else if (variant > 1)
            continue;
          try {
            body(kind, of, made(kind, of));
          } catch (const core::failure& refused) {
            if (refused.code != VELO_ERR_ARGUMENT) throw;
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("nothing is wrong with any schedule that is made") {
  int count = 0;
  for_each_schedule([&](velo_schedule_kind kind, const test::sizes& of, const auto& order) {
    ++count;
    const std::string wrong = test::violations_of(order);
    if (!wrong.empty())
      FAIL("kind " << kind << ", " << of.ranks << " ranks, " << of.microbatches
                   << " micro-batches, chunks " << of.chunks << ": " << wrong);
  });
  CHECK(count > 4000);
}

TEST_CASE("no schedule is shorter than its busiest rank, or than its longest chain") {
  const sched::costs costs{1, 1.2, 0.8, -1, 0.1};
  for_each_schedule([&](velo_schedule_kind, const test::sizes&, const sched::schedule& order) {
    const sched::timeline times = test::timed(order, costs);
    const sched::ticks& scale = times.times.scale;
    const sched::shape& what = order.what();
    const std::int64_t chain = what.chain_length() * (scale.forward + scale.input) + scale.weight;
    if (times.times.makespan() < times.times.work() || times.times.makespan() < chain)
      FAIL("kind " << what.kind << ", " << what.ranks << " ranks");
  });
}
