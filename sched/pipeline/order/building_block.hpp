// Schedules of V placement made of one block: a micro-batch's actions in slots of one unit of time,
// the same for every micro-batch, six slots later each.
//
// How long a block holds a chunk's activations decides the peak of memory; V-Half and V-Min choose
// that. Repeating the block wastes time where micro-batches begin and end, so actions are moved to
// earlier slots, once with W in slots of its own and once more with W wherever a slot is left,
// never above the peak there was. Orders follow from unit costs alone. O(P M log(P M)), and O(P^2)
// moves of a length of O(P) slots at both ends.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

// Slots of micro-batch 0 on a rank: forward of chunks 0 and 1, I of chunks 1 and 0.
using block = std::array<std::int64_t, 4>;

// blocks: by rank.
schedule repeat_block(const request& wanted, const std::vector<block>& blocks);

}  // namespace velo::sched
