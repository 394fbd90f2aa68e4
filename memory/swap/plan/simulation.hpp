// A simulation of a step, by rules that say how it may make room.
//
// A stage begins when its buffers are in memory and the budget holds all live ones; until then the
// step stalls. Two links, one in each direction, move one buffer at a time: whenever the link out
// is idle and a coming stage will not fit, a buffer is moved out; whenever the link in is idle, the
// buffer needed first is moved in, unless its room is needed before. Where the step would stall, a
// buffer may be dropped and recomputed before its next use, or recomputed instead of waiting for
// the link, if that takes less than a given fraction of the links' time.
//
// Cost: O(stages * (stages + buffers alive)), with drops as much again for each.
#pragma once

#include <optional>

#include "memory/swap/plan/stages.hpp"
#include "memory/swap/plan/swap_schedule.hpp"

namespace velo::memory {

struct swap_ways {
  velo_swap_policy policy = VELO_SWAP_FURTHEST;  // which chooses the buffer to evict
  bool links = true;                             // buffers may go
  double drops_below = 0;  // the fraction of the links' time that recomputing may take; 0: none
};

// nullopt: a stage cannot begin under these rules. With links alone every stage can, given a budget
// that holds the buffers of each stage.
std::optional<swap_schedule> simulate_swaps(const swap_stages& step,
                                            const velo_swap_options& options,
                                            const swap_ways& ways);

}  // namespace velo::memory
