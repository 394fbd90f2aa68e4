// Orders by list scheduling: ranks are simulated with their costs, and a free rank does the action
// of highest priority whose inputs it has.
//
// A stage works on its units in order. A forward begins only if its rank keeps room for the chunks
// that its unit still has to pass there, so the oldest unit always gets through and no policy
// deadlocks. A rank may wait for an input of higher priority instead of doing an action of lower
// priority. O(actions log ranks), about 100 ns each.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sched/schedule/ticks.hpp"

namespace velo::sched {

struct policy {
  // The priority of actions, smaller numbers first: F of chunk 0, F of others, I, W.
  enum of : int { entering, passing, input, weight };
  std::array<std::int8_t, 4> priority = {2, 1, 0, 3};
  bool first_chunk_first = false;  // of two I, the one of the first chunk goes first
  double wait_share = 0;           // the longest wait, as a share of the action it would do instead
};

struct ordered {
  bool done = false;  // false: nothing else is set
  std::vector<std::vector<action>> rows;
  std::int64_t makespan = 0;
};

// stages: in the order in which a unit passes them. room: the most activations held, in shares of
// stages; at least those of all chunks of a rank. limit: the search gives up once it cannot be
// shorter. record: whether rows are returned.
ordered order_by(const policy& of, const shape& sizes, const ticks& costs, const placement& stages,
                 std::int64_t room, std::int64_t limit, bool record);

}  // namespace velo::sched
