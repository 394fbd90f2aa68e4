// Makespan, peak and sigma of every kind, compared with the published generators and an independent
// simulator.
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

struct numbers {
  double makespan, peak, sigma;
};
bool operator==(const numbers& a, const numbers& b) {
  return a.makespan == b.makespan && a.peak == b.peak && a.sigma == b.sigma;
}
std::ostream& operator<<(std::ostream& to, const numbers& n) {
  return to << n.makespan << "/" << n.peak << "/" << n.sigma;
}

struct column {
  velo_schedule_kind kind;
  std::uint32_t flags = 0;
};
constexpr column columns[] = {{VELO_SCHEDULE_1F1B},
                              {VELO_SCHEDULE_ZBH1},
                              {VELO_SCHEDULE_ZBH2},
                              {VELO_SCHEDULE_ZBV},
                              {VELO_SCHEDULE_1F1B_V},
                              {VELO_SCHEDULE_VHALF},
                              {VELO_SCHEDULE_VMIN},
                              {VELO_SCHEDULE_DUALPIPEV},
                              {VELO_SCHEDULE_DUALPIPEV, VELO_SCHEDULE_NO_DW_DETACH}};
struct row {
  std::int32_t ranks, microbatches;
  numbers of[std::size(columns)];
};
// clang-format off
constexpr row table[] = {
    {2, 4, {{15, 2, 3}, {13, 2, 1}, {13, 3, 0}, {12.5, 2, 0}, {14, 2, 2},
       {12.5, 2, 0.5}, {13.5, 2, 1.5}, {13, 2.5, 1}, {14, 2.5, 2}}},
    {2, 8, {{27, 2, 3}, {25, 2, 1}, {25, 3, 0}, {24.5, 2, 0}, {26, 2, 2},
       {24.5, 2, 0.5}, {25.5, 2, 1.5}, {25, 2.5, 1}, {26, 2.5, 2}}},
    {4, 8, {{33, 4, 9}, {27, 4, 3}, {27, 7, 0}, {25.5, 4, 0}, {31.5, 3, 7.5},
       {26.5, 3, 2.5}, {29.5, 2, 5.5}, {27, 4.5, 3}, {30, 4.5, 6}}},
    {4, 12, {{45, 4, 9}, {39, 4, 3}, {39, 7, 0}, {37.5, 4, 0}, {43.5, 3, 7.5},
       {38.5, 3, 2.5}, {41.5, 2, 5.5}, {39, 4.5, 3}, {42, 4.5, 6}}},
    {4, 16, {{57, 4, 9}, {51, 4, 3}, {51, 7, 0}, {49.5, 4, 0}, {55.5, 3, 7.5},
       {50.5, 3, 2.5}, {53.5, 2, 5.5}, {51, 4.5, 3}, {54, 4.5, 6}}},
    {6, 12, {{51, 6, 15}, {41, 6, 5}, {41, 11, 0}, {38.5, 6, 0}, {47, 5, 11},
       {41.5, 4, 5.5}, {44.5, 3, 8.5}, {41, 6.5, 5}, {46, 6.5, 10}}},
    {8, 16, {{69, 8, 21}, {55, 8, 7}, {55, 15, 0}, {51.5, 8, 0}, {64.5, 6, 16.5},
       {56.5, 5, 8.5}, {61.5, 4, 13.5}, {55, 8.5, 7}, {62, 8.5, 14}}},
    {8, 24, {{93, 8, 21}, {79, 8, 7}, {79, 15, 0}, {75.5, 8, 0}, {88.5, 6, 16.5},
       {80.5, 5, 8.5}, {85.5, 4, 13.5}, {79, 8.5, 7}, {86, 8.5, 14}}},
    {8, 32, {{117, 8, 21}, {103, 8, 7}, {103, 15, 0}, {99.5, 8, 0},
       {112.5, 6, 16.5}, {104.5, 5, 8.5}, {109.5, 4, 13.5}, {103, 8.5, 7}, {110, 8.5, 14}}},
    {8, 64, {{213, 8, 21}, {199, 8, 7}, {199, 15, 0}, {195.5, 8, 0},
       {208.5, 6, 16.5}, {200.5, 5, 8.5}, {205.5, 4, 13.5}, {199, 8.5, 7}, {206, 8.5, 14}}},
    {12, 24, {{105, 12, 33}, {83, 12, 11}, {83, 23, 0}, {77.5, 12, 0},
       {98, 9, 26}, {86.5, 7, 14.5}, {92.5, 5, 20.5}, {83, 12.5, 11}, {94, 12.5, 22}}},
    {16, 32, {{141, 16, 45}, {111, 16, 15}, {111, 31, 0}, {103.5, 16, 0},
       {133.5, 11, 37.5}, {116.5, 9, 20.5}, {125.5, 6, 29.5}, {111, 16.5, 15}, {126, 16.5, 30}}},
};
// clang-format on

numbers found(const priced& of) {
  return {of.makespan, of.peak, of.sigma};
}

}  // namespace

TEST_CASE("all kinds have their golden values at equal costs") {
  for (const row& of : table) {
    for (std::size_t c = 0; c < std::size(columns); ++c) {
      CAPTURE(columns[c].kind, columns[c].flags, of.ranks, of.microbatches);
      const sched::schedule order =
          made(columns[c].kind, {of.ranks, of.microbatches, 0, 0, columns[c].flags});
      CHECK(found(price(order)) == of.of[c]);
      CHECK(price(order).work == 3 * of.microbatches);
    }
    CHECK(found(price(made(VELO_SCHEDULE_ZBV_GREEDY, {of.ranks, of.microbatches}))) == of.of[3]);
  }
}

TEST_CASE("all kinds have their golden values at measured costs") {
  const sched::costs costs{18522, 18086, 9337};
  const auto makespan = [&](velo_schedule_kind kind, std::int32_t chunks = 0) {
    const priced of = price(made(kind, {8, 24, chunks}, costs), costs);
    CHECK(of.work == 1102680);
    return of.makespan;
  };
  CHECK(makespan(VELO_SCHEDULE_1F1B) == 1424295);
  CHECK(makespan(VELO_SCHEDULE_INTERLEAVED, 2) == 1263487.5);
  CHECK(makespan(VELO_SCHEDULE_INTERLEAVED, 4) == 1183083.75);
  CHECK(makespan(VELO_SCHEDULE_ZBH1) == 1293577);
  CHECK(makespan(VELO_SCHEDULE_ZBH2) == 1241083);
  CHECK(makespan(VELO_SCHEDULE_ZBV_GREEDY) == 1169033);
  CHECK(makespan(VELO_SCHEDULE_ZBV) == 1168815);
  CHECK(makespan(VELO_SCHEDULE_VHALF) == 1300577.5);
  CHECK(makespan(VELO_SCHEDULE_VMIN) == 1572716.5);
  CHECK(price(made(VELO_SCHEDULE_ZBH2, {8, 24}, costs), costs).sigma == 125538);
}

TEST_CASE("all kinds have their golden values at costs of few digits") {
  const sched::costs costs{1, 1.2, 0.8};
  const auto of = [&](velo_schedule_kind kind, double cap = 0) {
    return price(made(kind, {8, 24, 0, 0, 0, 0, cap}, costs), costs);
  };
  CHECK(of(VELO_SCHEDULE_1F1B).makespan == 93);
  CHECK(of(VELO_SCHEDULE_ZBH1).makespan == 81.8);
  CHECK(of(VELO_SCHEDULE_ZBH2).makespan == 79);
  CHECK(of(VELO_SCHEDULE_ZBH2).sigma == 4.2);
  CHECK(of(VELO_SCHEDULE_ZBH2, 16).sigma == 3.4);
  CHECK(of(VELO_SCHEDULE_ZBH2, 24).sigma == 0);
  CHECK(of(VELO_SCHEDULE_ZBV).makespan == 76.2);
  CHECK(of(VELO_SCHEDULE_VHALF).makespan == 83.5);
  CHECK(of(VELO_SCHEDULE_VMIN).makespan == 100.5);
  CHECK(of(VELO_SCHEDULE_DUALPIPEV).makespan == 80.6);
}
