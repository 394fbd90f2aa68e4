// Addresses for planned swaps: in one arena, an offset for each stay of a buffer in memory.
//
// Stays are lifetimes counted in moments of the plan, so static placement (plan/placement.hpp)
// places them like buffers. The lower bound is the peak of the swaps. A stay's addresses are free
// once the earlier stays there have been copied out; `room` lists those stays. It does not list
// stays that ended with their buffer's life, because the stages that used them are over before the
// next stay begins.
//
// Cost: that of the placement, and O(log n) for each stay.
#pragma once

#include "memory/plan/solver/placement.hpp"
#include "memory/swap/plan/swap_schedule.hpp"

namespace velo::memory {

// Gives every stay an offset and its `room`. Limits are the planner's. The schedule has no drops.
void place_stays(swap_schedule& schedule, const plan_limits& limits);

}  // namespace velo::memory
