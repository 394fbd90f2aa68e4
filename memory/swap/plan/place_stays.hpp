// Addresses for planned swaps: one place for each stay of a buffer in memory, in one arena.
//
// Stays are lifetimes counted in moments of the plan, so that the static planner (plan.hpp) places
// them as it places buffers: the lower bound is the peak of the swaps. A place is free for its next
// stay when the stays that left it by a copy are out: `room` names them. Stays that ended with
// their buffer's life are not named: the stages that used them are over before the next stay
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
