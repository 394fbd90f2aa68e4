// A graph of operations whose outputs can be made again, and what a schedule of it is.
//
// Operations stand in the order in which they first run; each has one output, takes outputs of
// earlier ones, and while it runs needs these, its own output and its workspace in memory. A
// schedule computes and frees: an operation may run several times, its output is there from a run
// to a free.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "memory/plan/solver/problem.hpp"

namespace velo::memory {

// The longest time of an operation, so long that none takes it, and so short that sums are finite.
inline constexpr double most_seconds = 1e18;

struct op_graph {
  std::vector<double> seconds;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> workspace;
  std::vector<std::uint8_t> keep;  // 1 = the output is there in the end
  number_lists inputs;             // of each operation, each once
  number_lists takers;             // the operations that take its output, ascending

  int size() const { return static_cast<int>(seconds.size()); }
};

struct op_step {
  std::int32_t op;
  bool computes;  // else frees
};

// Fills in `takers`.
void find_takers(op_graph& graph);

// Seconds of all operations once.
double seconds_once(const op_graph& graph);

// Bytes that some operation needs while it runs, with what must stay: no smaller budget works.
std::int64_t least_for_one(const op_graph& graph);

// The cost of an eviction, over bytes and a time, which decides the output to free for room.
enum class eviction {
  // As in dynamic tensor rematerialization (DTR, ICLR'21), which does not know the operations to
  // come: the operation and its freed neighbors, over the time since the output was last used.
  past,
  // With the order known: the operation and what must run before it, over the time until it is
  // used.
  next,
  // As `next`, the time squared.
  far,
};

// The limits at which a greedy schedule gives up: it repeats itself, or is too slow to be of use.
struct greedy_limits {
  std::size_t steps = 0;
  double seconds = std::numeric_limits<double>::infinity();      // of all runs, those to come once
  std::int64_t work = std::numeric_limits<std::int64_t>::max();  // operations looked at on walks
};

// Runs the operations in order; makes what is missing again, frees what no operation to come takes,
// and, where room is needed, what costs least. None: it did not come through within the limits.
// O(frees * outputs there), and the walks over freed neighbors.
std::optional<std::vector<op_step>> run_greedily(const op_graph& graph, std::int64_t budget,
                                                 eviction rule, const greedy_limits& limits);

}  // namespace velo::memory
