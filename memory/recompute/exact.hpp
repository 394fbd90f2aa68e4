// Exact search for the schedules of small graphs: least seconds within a budget, least budget at
// all.
//
// A state is the next operation to run for the first time and the set of outputs in memory. A step
// computes an operation whose inputs are there, or frees an output. A* finds the shortest path to a
// state in which everything has run and what is kept is there. Its bound sums the operations that
// must run again: outputs that are missing and still needed, and the missing outputs these take.
// A graph of n operations has less than 2^(n+1) states, so up to `always_exact` operations a search
// always ends with a proof. Larger graphs are searched up to `most_states` states: the bound often
// proves the optimum of those, too. Random graphs and training steps took 25 ms at most with 16
// operations and 140 ms with 62 (EPYC, 2026-11).
#pragma once

#include <cstdint>
#include <vector>

#include "memory/recompute/graph.hpp"

namespace velo::memory {

inline constexpr int always_exact = 16;  // stated in velo/recompute_plan.h
inline constexpr int most_exact = 63;    // a state is a word of 64 bits
inline constexpr std::size_t most_states = std::size_t{1} << (always_exact + 1);

struct exact_schedule {
  std::vector<op_step> steps;  // none when no better schedule was found
  bool proven = false;         // no schedule takes less than `steps`, or than `below` without steps
};

// The schedule within the budget that takes least seconds, if it takes less than `below`. The graph
// has 1 to most_exact operations.
exact_schedule least_seconds(const op_graph& graph, std::int64_t budget, double below);

// The least budget for which a schedule exists, of a graph of 1 to always_exact operations.
std::int64_t least_bytes_exactly(const op_graph& graph);

}  // namespace velo::memory
