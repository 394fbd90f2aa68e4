// Schedules of V placement that repeat one block: the actions of a micro-batch in time slots of
// unit length, the same for every micro-batch, six slots later each.
//
// The time for which a block holds a chunk's activations decides the peak of memory; V-Half and
// V-Min choose it. Repeating the block wastes time where micro-batches begin and end. Actions are
// therefore moved to earlier slots, once with W in slots of its own and once with W wherever a slot
// is free, never above the previous peak. Orders follow from unit costs alone. O(P M log(P M)), and
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
