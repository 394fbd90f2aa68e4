// The fastest schedule of a graph at a budget of bytes, as far as it is found.
//
// Up to 16 operations an exact search finds the optimum (memory/recompute/exact.hpp). Beyond that
// greedy schedules come first; one of them is DTR's, so the result is never worse than DTR's. Each
// becomes a table of stages (memory/recompute/stages.hpp), in which outputs stay while there is
// memory. The best table is annealed for an amount of work that depends only on the graph's size,
// so the same graph, budget and seed give the same schedule on every machine. Up to 63 operations
// the exact search then improves the schedule or proves it optimal, within a limit of states.
// Graphs of more than 4,096 operations get only greedy schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/recompute/graph.hpp"

namespace velo::memory {

struct op_schedule {
  std::vector<op_step> steps;
  double seconds = 0;
  std::int64_t peak = 0;
  bool is_optimal = false;  // proven: no schedule takes less; without steps: none exists
};

// The seconds and the peak of a schedule.
op_schedule measured(const op_graph& graph, std::vector<op_step> steps);

// The peak of bytes if everything runs once and is freed after its last use.
std::int64_t peak_of_all(const op_graph& graph);

// The best schedule found. It has no steps if none was found, or if nothing is to run. seed: of the
// random choices.
op_schedule solve(const op_graph& graph, std::int64_t budget, std::uint64_t seed);

// A budget at which solve() finds a schedule with that seed: the least possible one up to 16
// operations, else the least that was found.
std::int64_t least_budget(const op_graph& graph, std::uint64_t seed);

}  // namespace velo::memory
