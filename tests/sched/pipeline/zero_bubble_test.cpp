// Kinds with separate W: orders of worked examples, formulas up to many ranks, caps.
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

TEST_CASE("ZB-H1 puts off one W more on every rank") {
  const sched::schedule order = made(VELO_SCHEDULE_ZBH1, {4, 8});
  CHECK(row_of(order, 0) ==
        "0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0F6 0I3 0W3 0F7 0I4 0W4 0I5 0W5 0I6 0W6 "
        "0I7 0W7");
  CHECK(row_of(order, 1) ==
        "1F0 1F1 1F2 1I0 1F3 1I1 1W0 1F4 1I2 1W1 1F5 1I3 1W2 1F6 1I4 1W3 1F7 1I5 1W4 1I6 1W5 1I7 "
        "1W6 1W7");
  CHECK(row_of(order, 2) ==
        "2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2F6 2I5 2W3 2F7 2I6 2W4 2I7 2W5 "
        "2W6 2W7");
  CHECK(row_of(order, 3) ==
        "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 3F5 3I5 3W2 3F6 3I6 3W3 3F7 3I7 3W4 3W5 "
        "3W6 3W7");
}

TEST_CASE("ZB1P's bubble and peak are the formulas'") {
  for (const std::int32_t ranks : {1, 2, 3, 4, 8, 16, 64}) {
    for (const std::int32_t chunks : {1, 2, 4}) {
      for (const auto& costs :
           {sched::costs{1, 1, 1}, sched::costs{1, 1.2, 0.8}, sched::costs{1, 0.75, 0.5},
            sched::costs{0.5, 1, 1.5}, sched::costs{1, 2, 1}}) {
        const std::int32_t microbatches = 2 * ranks;
        CAPTURE(ranks, chunks, costs.forward, costs.input, costs.weight);
        const auto kind = chunks == 1 ? VELO_SCHEDULE_ZBH1 : VELO_SCHEDULE_ZB1P;
        const sched::schedule order = made(kind, {ranks, microbatches, chunks});
        const sched::timeline times = timed(order, costs);
        const double work = (costs.forward + costs.input + costs.weight) * microbatches;
        const double bubble =
            (ranks - 1) * (costs.input + std::max(0.0, costs.forward - costs.weight)) / chunks;
        CHECK(times.in_units(times.times.makespan()) == Approx(work + bubble).epsilon(1e-15));
        for (const sched::rank_times& rank : times.times.ranks)
          if (costs.forward == costs.input) CHECK(times.in_microbatches(rank.peak) == ranks);
      }
    }
  }
}

TEST_CASE("ZB-V has the order of its closed form") {
  const sched::schedule order = made(VELO_SCHEDULE_ZBV, {2, 4});
  CHECK(row_of(order, 0) ==
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 "
        "0I3 0W3");
  CHECK(row_of(order, 1) ==
        "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 "
        "2W3 1W3");
}

TEST_CASE("ZB-V of few micro-batches is that of more without them") {
  const sched::schedule few = made(VELO_SCHEDULE_ZBV, {4, 3});
  const sched::schedule many = made(VELO_SCHEDULE_ZBV, {4, 7});
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    std::string kept;
    for (sched::row_reader row(many, rank); !row.done(); row.pass())
      if (row.next().microbatch < 3) kept += (kept.empty() ? "" : " ") + sched::text_of(row.next());
    CHECK(row_of(few, rank) == kept);
  }
}

TEST_CASE("no rank of ZB-V idles at equal costs, whatever the number of ranks") {
  for (std::int32_t ranks = 1; ranks <= 64; ++ranks) {
    const priced of = price(made(VELO_SCHEDULE_ZBV, {ranks, 2 * ranks}));
    CAPTURE(ranks);
    CHECK(of.sigma == 0);
    CHECK(of.makespan == 6 * ranks + (ranks - 1) / 2.0);
    CHECK(of.peak == ranks);
  }
}

TEST_CASE("no rank of ZB-H2 idles at equal costs, in room for 2P - 1") {
  for (std::int32_t ranks = 1; ranks <= 64; ranks += ranks < 8 ? 1 : 7) {
    const priced of = price(made(VELO_SCHEDULE_ZBH2, {ranks, 3 * ranks}));
    CAPTURE(ranks);
    CHECK(of.sigma == 0);
    CHECK(of.makespan == 9 * ranks + ranks - 1);
    CHECK(of.peak == 2 * ranks - 1);
  }
}

TEST_CASE("a cap is kept, and one in which nothing fits refused") {
  const sched::costs costs{1, 1.3, 0.7, -1, 0.1};
  for (const velo_schedule_kind kind : {VELO_SCHEDULE_ZBH2, VELO_SCHEDULE_ZBV_GREEDY}) {
    double before = 1e9;
    for (const double cap : {8.0, 8.5, 9.0, 12.0, 20.0}) {
      CAPTURE(kind, cap);
      const sched::schedule order = made(kind, {8, 20, 0, 0, 0, 0, cap}, costs);
      CHECK(violations_of(order).empty());
      const priced of = price(order, costs);
      CHECK(of.peak <= cap);
      CHECK(of.sigma <= before + 1e-9);
      before = of.sigma;
    }
    for (const double cap : {0.25, 1.0, 3.0}) {
      if (kind == VELO_SCHEDULE_ZBH2 && cap >= 1) continue;  // one at a time always goes
      const auto found = failure_of([&] { made(kind, {8, 20, 0, 0, 0, 0, cap}, costs); });
      CHECK_REFUSED(found, VELO_ERR_ARGUMENT, "desc.cap");
      // The message names the given cap, and one that suffices.
      CHECK(std::stod(found.got) == cap);
      const std::string expected = found.expected;
      const std::size_t as = expected.find("such as ");
      REQUIRE(as != std::string::npos);
      const double enough = std::stod(expected.substr(as + 8));
      CHECK(enough > cap);
      CHECK(price(made(kind, {8, 20, 0, 0, 0, 0, enough}, costs), costs).peak <= enough);
    }
  }
}

TEST_CASE("what kinds cannot take is refused by name") {
  CHECK(refused(VELO_SCHEDULE_ZB1P, {4, 9, 2}) == "desc.microbatches");
  CHECK(refused(VELO_SCHEDULE_ZBV, {4, 9, 1}) == "desc.chunks");
  CHECK(refused(VELO_SCHEDULE_ZBV, {4, 9, 3}) == "desc.chunks");
  CHECK(refused(VELO_SCHEDULE_ZBV, {4, 9, 0, 0, 0, 0, 4}) == "desc.cap");
  CHECK(refused(VELO_SCHEDULE_ZBH2, {4, 9, 0, 0, 0, 0, -4}) == "desc.cap");
  CHECK(refused(VELO_SCHEDULE_ZBH1, {4, 9, 0, 0, 0, 2}) == "desc.splits");
}
