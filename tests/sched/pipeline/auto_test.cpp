// The search: never longer than what it could have taken, within the cap, and often shorter.

#include "sched/simulate/lower.hpp"
#include "tests/core/fails.hpp"
#include "tests/random.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// The shortest of the kinds that hold no more than the cap.
double shortest_kind(std::int32_t ranks, std::int32_t microbatches, double cap,
                     const sched::costs& costs) {
  double shortest = 1e300;
  for (velo_schedule_kind kind = VELO_SCHEDULE_1F1B; kind <= sched::last_schedule_kind; ++kind) {
    const sched::kind_row& row = sched::row_of(kind);
    sizes of{ranks, microbatches};
    if (kind == VELO_SCHEDULE_AUTO || kind == VELO_SCHEDULE_DUALPIPE)
      continue;  // twice the weights
    if (kind > VELO_SCHEDULE_AUTO && !row.has(sched::in_auto)) continue;
    if (row.has(sched::takes_cap)) of.cap = cap;
    try {
      const priced found = price(made(kind, of, costs), costs);
      if (found.peak <= cap) shortest = std::min(shortest, found.makespan);
    } catch (const core::failure&) {  // there is none of this size
    }
  }
  return shortest;
}

}  // namespace

TEST_CASE("what is found is never longer than a kind that fits, and often shorter") {
  random_source32 random(3);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random.below(1000)) / 1000;
  };
  int shorter = 0;
  constexpr int cases = 24;
  for (int i = 0; i < cases; ++i) {
    const auto ranks = static_cast<std::int32_t>(2 + random.below(7));
    const auto microbatches = static_cast<std::int32_t>(ranks + random() % (3 * ranks));
    const int least = (ranks + 2) / 3 + 1;
    const double cap = std::floor(between(least, 2 * ranks + 1));
    sched::costs costs{between(0.5, 2), between(0.5, 2), between(0.5, 2), -1, between(0, 0.3)};
    CAPTURE(ranks, microbatches, cap, costs.forward, costs.input, costs.weight, costs.latency);
    const sched::schedule found =
        made(VELO_SCHEDULE_AUTO, {ranks, microbatches, 0, 0, 0, 0, cap}, costs);
    CHECK(found.sizes().kind == VELO_SCHEDULE_AUTO);
    CHECK(violations_of(found).empty());
    CHECK(violations_of(sched::lower(found)).empty());
    const priced of = price(found, costs);
    CHECK(of.peak <= cap);
    const double best = shortest_kind(ranks, microbatches, cap, costs);
    CHECK(of.makespan <= best * (1 + 1e-12));
    shorter += of.makespan < best * (1 - 1e-9) ? 1 : 0;
  }
  CHECK(shorter >= cases / 2);
}

TEST_CASE("what cannot be improved is found as it is") {
  const priced of = price(made(VELO_SCHEDULE_AUTO, {8, 24}));
  CHECK(of.makespan == 75.5);
  CHECK(of.peak == 8);
  CHECK(price(made(VELO_SCHEDULE_AUTO, {1, 5})).makespan == 15);
  CHECK(price(made(VELO_SCHEDULE_AUTO, {4, 1})).makespan > 0);
}

TEST_CASE("the number of chunks is kept where one is given") {
  for (const std::int32_t chunks : {1, 2})
    CHECK(made(VELO_SCHEDULE_AUTO, {4, 8, chunks}).sizes().stages == 4 * chunks);
  CHECK(failure_of([] { made(VELO_SCHEDULE_AUTO, {4, 8, 3}); }).code == VELO_ERR_ARGUMENT);
}

TEST_CASE("a cap in which nothing fits is refused, one micro-batch always fits") {
  CHECK(price(made(VELO_SCHEDULE_AUTO, {4, 8, 0, 0, 0, 0, 1})).peak == 1);
  const auto found = failure_of([] { made(VELO_SCHEDULE_AUTO, {4, 8, 0, 0, 0, 0, 0.5}); });
  CHECK_REFUSED(found, VELO_ERR_ARGUMENT, "desc.cap");
  CHECK(found.got == "0.5");
  CHECK(found.expected == "room in which an order is found, such as 1 micro-batch");
}
