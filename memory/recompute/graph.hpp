// A graph of operations whose outputs can be recomputed, and a schedule of it.
//
// Operations are in the order in which they first run. Each has one output and takes outputs of
// earlier operations; while it runs, these, its own output and its workspace are in memory. A
// schedule consists of computing and freeing steps. An operation may run several times; its output
// is in memory from a run to the next free.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "memory/plan/solver/problem.hpp"

namespace velo::memory {

// The limit of an operation's seconds: longer than any real one, and short enough that sums stay
// finite.
inline constexpr double most_seconds = 1e18;

struct op_graph {
  std::vector<double> seconds;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> workspace;
  std::vector<std::uint8_t> keep;  // 1: the output is in memory at the end
  number_lists inputs;             // of each operation, without repetitions
  number_lists takers;             // the operations that take its output, ascending

  int size() const { return static_cast<int>(seconds.size()); }
};

struct op_step {
  std::int32_t op;
  bool computes;  // false: frees
};

// Fills in `takers`.
void find_takers(op_graph& graph);

// Seconds if every operation runs once.
double seconds_once(const op_graph& graph);

// The most bytes that any operation needs while it runs, with the outputs that must stay. No
// smaller budget works.
std::int64_t least_for_one(const op_graph& graph);

// The cost of an eviction, which decides what output to free: seconds over bytes and a time.
enum class eviction {
  // As in dynamic tensor rematerialization (DTR, ICLR'21), which does not know the coming
  // operations: seconds of the operation and its freed neighbors, over the time since the output's
  // last use.
  past,
  // The order is known: seconds of the operation and of everything that must run before it, over
  // the time until its next use.
  next,
  // As `next`, with the time squared.
  far,
};

// The limits at which a greedy schedule gives up, because it repeats itself or takes too long.
struct greedy_limits {
  std::size_t steps = 0;
  // The limit for all runs, with coming operations counted once.
  double seconds = std::numeric_limits<double>::infinity();
  std::int64_t work = std::numeric_limits<std::int64_t>::max();  // operations visited on walks
};

// Runs the operations in order. It recomputes missing outputs, frees those that no coming operation
// takes, and, if it needs memory, those that cost least. Returns nullopt if it exceeded the limits.
// O(frees * outputs in memory), and the walks over freed neighbors.
std::optional<std::vector<op_step>> run_greedily(const op_graph& graph, std::int64_t budget,
                                                 eviction rule, const greedy_limits& limits);

}  // namespace velo::memory
