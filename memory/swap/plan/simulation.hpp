// Simulates a step under rules that say how it may make room.
//
// A stage begins when its buffers are in memory and the budget holds all live ones; until then the
// step stalls. Two links, one in each direction, move one buffer at a time. Whenever the link out
// is idle and a coming stage will not fit, a buffer is moved out. Whenever the link in is idle, the
// buffer needed first is moved in, unless its memory is needed before. If the step would stall, a
// buffer may be dropped and recomputed before its next use, or recomputed instead of waiting for
// the link, provided that this takes less than a given fraction of the links' time.
//
// Cost: O(stages * (stages + buffers alive)), with drops as much again for each drop.
#pragma once

#include <optional>

#include "memory/swap/plan/stages.hpp"
#include "memory/swap/plan/swap_schedule.hpp"

namespace velo::memory {

struct swap_ways {
  velo_swap_policy policy = VELO_SWAP_FURTHEST;  // which chooses the buffer to evict
  bool links = true;                             // buffers may be moved over the links
  double drops_below = 0;  // limit of recomputing, as a fraction of the links' time; 0: no drops
};

// Returns nullopt if a stage cannot begin under these rules. With links alone every stage can
// begin, if the budget holds the buffers of each stage.
std::optional<swap_schedule> simulate_swaps(const swap_stages& step,
                                            const velo_swap_options& options,
                                            const swap_ways& ways);

}  // namespace velo::memory
