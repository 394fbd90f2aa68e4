// The schedule of a graph at a budget of bytes that takes least time, as far as it is found.
//
// Up to 16 operations an exact search finds the optimum (memory/recompute/exact.hpp). Beyond that
// greedy schedules come first (one of them is DTR's, so that none is worse); each becomes a table
// of stages (memory/recompute/stages.hpp), in which outputs stay where there is room, and the best
// one is annealed for an amount of work that depends on nothing but the graph's size: the same
// graph, budget and seed give the same schedule on every machine. Up to 63 operations the exact
// search then improves the schedule or proves it optimal, within a bound on its states. Graphs of
// more than 4,096 operations are scheduled greedily alone.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/recompute/graph.hpp"

namespace velo::memory {

struct op_schedule {
  std::vector<op_step> steps;
  double seconds = 0;
  std::int64_t peak = 0;
  bool is_optimal = false;  // proven: no schedule takes less, or none exists if there are no steps
};

// Seconds and peak of steps.
op_schedule measured(const op_graph& graph, std::vector<op_step> steps);

// Most bytes at a moment when everything runs once and is freed after its last use.
std::int64_t peak_of_all(const op_graph& graph);

// The best schedule found; no steps when none was, or nothing is to be run. seed: of the choices
// left to chance.
op_schedule solve(const op_graph& graph, std::int64_t budget, std::uint64_t seed);

// A budget at which solve() finds a schedule with that seed: up to 16 operations the least that has
// one, else the least that was found.
std::int64_t least_budget(const op_graph& graph, std::uint64_t seed);

}  // namespace velo::memory
