// Schedules of V placement that repeat one block: the actions of a micro-batch in time slots of
// unit length. Every next micro-batch has the same block six slots later.
//
// The time for which a block holds a chunk's activations determines the peak of memory; V-Half and
// V-Min choose it. Repeating the block wastes time where micro-batches begin and end. Actions are
// therefore moved to earlier slots, once with W in slots of their own and once with W in any free
// slots, never above the previous peak. Orders depend only on unit costs. O(P M log(P M)), and
// O(P^2) moves over O(P) slots at both ends.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

// The slots of micro-batch 0 on a rank: forward of chunks 0 and 1, I of chunks 1 and 0.
using block = std::array<std::int64_t, 4>;

// blocks: by rank.
schedule repeat_block(const request& wanted, const std::vector<block>& blocks);

}  // namespace velo::sched
