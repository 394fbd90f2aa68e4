// Addresses for planned swaps: one offset for each stay of a buffer in memory, in one arena.
//
// Stays are lifetimes counted in moments of the plan, so that static placement (plan/placement.hpp)
// places them like buffers: the lower bound is the peak of the swaps. The addresses of a stay are
// free once the stays that left them by a copy are out: `room` lists those. Stays that ended with
// their buffer's life are not listed: the stages that used them are over before the next stay
// begins.
//
// Cost: that of the placement, and O(log n) for each stay.
#pragma once

#include "memory/plan/placement.hpp"
#include "memory/swap/plan/swap_schedule.hpp"

namespace velo::memory {

// Gives every stay an offset and its `room`. Limits are the planner's. The schedule drops nothing.
void place_stays(swap_schedule& schedule, const plan_limits& limits);

}  // namespace velo::memory
