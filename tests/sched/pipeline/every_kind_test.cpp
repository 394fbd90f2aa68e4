// Every kind's schedules have no violation, from one rank to twelve.
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("nothing is wrong with any schedule that is made") {
  int count = 0, made_of[sched::last_schedule_kind + 1] = {};
  for_each_schedule(12, [&](velo_schedule_kind kind, const sizes&, const auto& order) {
    ++count, ++made_of[kind];
    const std::string wrong = violations_of(order);
    if (!wrong.empty()) FAIL(wrong);
  });
  CHECK(count > 4000);
  for (velo_schedule_kind kind = VELO_SCHEDULE_GPIPE; kind <= sched::last_schedule_kind; ++kind) {
    INFO(sched::name_of(kind));
    CHECK((made_of[kind] > 0) == (kind != VELO_SCHEDULE_AUTO));
  }
}

TEST_CASE("no schedule is shorter than its busiest rank, or than its longest chain") {
  const sched::costs costs{1, 1.2, 0.8, -1, 0.1};
  for_each_schedule(12, [&](const sched::schedule& order) {
    const sched::timeline times = timed(order, costs);
    const sched::ticks& scale = times.times.scale;
    const sched::shape& sizes = order.sizes();
    const std::int64_t chain = sizes.chain_length() * (scale.forward + scale.input) + scale.weight;
    if (times.times.makespan() < times.times.work() || times.times.makespan() < chain)
      FAIL("kind " << sizes.kind << ", " << sizes.ranks << " ranks");
  });
}
