// Which buffers go to another tier when, for a step whose uses are known to fit a budget of memory.
//
// The step is a row of stages, each the computing between two points and what it needs at once. A
// stage begins when what it needs is there and the budget holds what is alive; until then the step
// stalls. Two links move buffers, one each way, one buffer at a time. The planner runs the step in
// its mind: whenever the link out is idle and a coming stage will not fit, the buffer whose next use
// lies furthest goes (Belady); whenever the link in is idle, the one needed first comes back, if
// nothing until its use will miss the room. The smart policy chooses by how many crowded stages a
// buffer's absence relieves and by its size, and takes one that would be late only if there is no
// other.
//
// No plan stalls less than the bound. Between the end of one stage and the beginning of another the
// links have to bring what is used in between and could not all stay, and to take away what was used
// in between and cannot all be there: what that takes longer than the computing in between is lost.
// The bound is the largest sum of such losses over stretches of the step that do not overlap, a
// longest path. Buffers count as divisible in it.
//
// Cost: O(stages * (stages + buffers alive)).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/plan.hpp"
#include "memory/plan_uses.hpp"
#include "velo/plan.h"

namespace velo::memory {

// One transfer. Seconds are those of the planned step, stalls included.
struct swap_transfer {
  bool out;
  std::int64_t buffer;
  std::int64_t after;   // the plan's time that has to be over
  std::int64_t before;  // the first time at which the buffer is needed again
  double begin, end;
};

struct swap_schedule {
  std::vector<swap_transfer> transfers;  // in the order of their beginnings
  double compute = 0, stall = 0, bound = 0;
  std::int64_t bytes_out = 0, bytes_in = 0;
  std::int64_t peak = 0;       // bytes resident at most
  std::int64_t peak_live = 0;  // without swaps
};

// Options are checked. Throws VELO_ERR_ARGUMENT (options.budget) when some stage needs more at once.
swap_schedule plan_swaps(const std::vector<lifetime>& buffers, const plan_uses& uses,
                         const velo_swap_options& options);

std::string write_swaps(const swap_schedule& schedule, const velo_swap_options& options);

}  // namespace velo::memory
