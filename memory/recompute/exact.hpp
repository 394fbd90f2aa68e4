// Exact search for the schedules of small graphs: the least seconds within a budget, or the least
// budget.
//
// A state is the next operation to run for the first time and the set of outputs in memory. A step
// computes an operation whose inputs are in memory, or frees an output. A* finds the shortest path
// to a state in which everything has run and the outputs to keep are in memory. Its bound sums the
// operations that must run again: outputs that are missing and still needed, and the missing
// outputs that these take. A graph of n operations has less than 2^(n+1) states, so a search of up
// to `always_exact` operations always ends with a proof. Larger graphs are searched up to
// `most_states` states; the bound often proves the optimum there, too. Random graphs and training
// steps took 25 ms at most with 16 operations and 140 ms with 62 (EPYC, 2026-11).
#pragma once

#include <cstdint>
#include <vector>

#include "memory/recompute/graph.hpp"

namespace velo::memory {

inline constexpr int always_exact = 16;  // stated in velo/recompute_plan.h
inline constexpr int most_exact = 63;    // a state is a word of 64 bits
inline constexpr std::size_t most_states = std::size_t{1} << (always_exact + 1);

struct exact_schedule {
  std::vector<op_step> steps;  // empty if no better schedule was found
  bool proven = false;  // no schedule takes less than `steps`; without steps: less than `below`
};

// The fastest schedule within the budget, if it takes less than `below` seconds. The graph has 1 to
// most_exact operations.
exact_schedule least_seconds(const op_graph& graph, std::int64_t budget, double below);

// The least budget for which a schedule exists. The graph has 1 to always_exact operations.
std::int64_t least_bytes_exactly(const op_graph& graph);

}  // namespace velo::memory
