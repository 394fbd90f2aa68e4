// A step run in the planner's mind by rules that say which ways of making room it may take.
//
// A stage begins when what it needs is there and the budget holds what is alive; until then the
// step stalls. Two links move buffers, one each way, one buffer at a time: whenever the link out is
// idle and a coming stage will not fit, a buffer goes; whenever the link in is idle, the one needed
// first comes back, if nothing until its use will miss the room. Where the step would stall, a
// buffer may be dropped instead, and made again before its next use, or be made again instead of
// waiting for the link, if that takes less than so large a part of the links' time.
//
// Cost: O(stages * (stages + buffers alive)), with drops as much again for each.
#pragma once

#include <optional>

#include "memory/swap/plan/swap_schedule.hpp"
#include "memory/swap/plan/stages.hpp"

namespace velo::memory {

struct swap_ways {
  velo_swap_policy policy = VELO_SWAP_FURTHEST;  // of choosing what goes
  bool links = true;                             // buffers may go
  double drops_below = 0;  // what making again may take of the links' time; 0: nothing is dropped
};

// Nothing: these ways lead to a stage that cannot begin. With links alone none does, given a budget
// that holds what each stage needs.
std::optional<swap_schedule> simulate_swaps(const swap_stages& step,
                                            const velo_swap_options& options,
                                            const swap_ways& ways);

}  // namespace velo::memory
