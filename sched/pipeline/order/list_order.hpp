// Orders by list scheduling: ranks are run by their costs, and a rank that is free does what its
// policy puts first of what it has the inputs for.
//
// A stage works on its units in order. A forward is begun only where its rank keeps room for the
// chunks that its unit still has to pass there, so that the oldest unit always comes through and no
// policy can get stuck. A rank may wait, instead of doing what stands lower, for something that is
// on its way. O(actions log ranks), about 100 ns each.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sched/schedule/ticks.hpp"

namespace velo::sched {

struct policy {
  // What stands before what, smaller numbers first: F of chunk 0, F of others, I, W.
  enum of : int { entering, passing, input, weight };
  std::array<std::int8_t, 4> place = {2, 1, 0, 3};
  bool first_chunk_first = false;  // of two I; else that of the last chunk
  double patience = 0;             // waits up to this share of what it would do instead
};

struct ordered {
  bool done = false;  // else nothing else is known
  std::vector<std::vector<action>> rows;
  std::int64_t makespan = 0;
};

// stages: of every rank, by chunk, in the order in which a unit passes them. room: most activations
// of stages held, in shares, at least those of a rank's chunks together. limit: given up as soon as
// it cannot be shorter. record: whether rows are wanted.
ordered order_by(const policy& of, const shape& what, const ticks& costs,
                 const std::vector<std::vector<std::int32_t>>& stages, std::int64_t room,
                 std::int64_t limit, bool record);

}  // namespace velo::sched
