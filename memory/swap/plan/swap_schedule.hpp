// Which buffers go to another tier when, for a step whose uses are known to fit a budget of memory.
//
// The step is a sequence of stages, each the computing between two points with the buffers that it
// needs at once; the planner simulates it (simulation.hpp). The buffer with the furthest next use
// is evicted (Belady). The smart policy chooses by the number of crowded stages that an eviction
// relieves and by size, and evicts a buffer that would return late only if there is no other. The
// joint policy simulates the step many times, with swaps alone, recomputation alone and both with
// several thresholds, and keeps the run with the least stall.
//
// The bound is a stall that no plan with swaps alone can undercut. Between two stages the links
// must bring in the buffers used there that could not stay, and take out those that cannot stay
// longer; the time beyond the computing in between is lost. The bound is the largest sum of such
// losses over disjoint stretches of the step, a longest path, with buffers taken as divisible.
//
// The result is complete: the transfers, the stays of buffers in memory between them, and both as
// moves in the order of their dependencies, so that an executor needs no clock (swap/planned.cpp).
//
// Cost: that of a run, of nine and more for the joint policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/plan/placement.hpp"
#include "memory/plan/uses.hpp"
#include "velo/plan.h"

namespace velo::memory {

// One transfer, drop or making. Seconds are those of the planned step, stalls included.
struct swap_transfer {
  velo_swap_action action;
  std::int64_t buffer;
  std::int64_t after;   // the plan's time that has to be over
  std::int64_t before;  // the first time at which the buffer is needed again
  double begin, end;
  std::int64_t stay;  // that an OUT or DROP ends, and an IN or MAKE begins
};

// A buffer in memory without a break. Begin and end count the moments at which memory is taken or
// freed: the sizes of stays at one moment add up to what is resident then.
struct swap_stay {
  std::int64_t buffer = 0;
  std::int64_t bytes = 0;
  std::int64_t begin = 0, end = 0;
  bool leaves = false;             // it ends by a transfer out, else with the buffer's life
  std::int64_t offset = -1;        // where the buffer is; -1: not placed
  std::vector<std::int32_t> room;  // stays that last left these addresses, and have to be out
};

// A move of the executor. The moves from one `ends` to the next belong to a stage: all of them may
// begin when the previous stage is over.
struct swap_move {
  enum class kind : std::uint8_t {
    take,  // a stay begins, of contents that the stage makes
    // A stay's copy to the tier begins; `stored`: nothing is copied, the tier has the contents.
    out,
    in,      // a stay begins, by a copy from the tier; `stored`: which keeps them for the next out
    give,    // a stay ends with the buffer's life
    begins,  // a stage does
    ends     // a stage does
  };
  kind what;
  std::int32_t stay = -1;
  bool stored = false;
};

struct swap_schedule {
  std::vector<swap_transfer> transfers;  // in the order of their beginnings
  std::vector<swap_stay> stays;          // in the order of their beginnings
  std::vector<swap_move> moves;
  std::vector<std::int64_t> stage_ends;  // by stage: the last time that belongs to it
  std::vector<std::vector<std::int64_t>>
      used;                 // by stage: buffers that are in memory all through it
  bool placed = false;      // the stays have offsets
  std::int64_t height = 0;  // bytes that they need there
  double compute = 0, stall = 0, bound = 0;
  double remaking = 0;  // of the stall
  std::int64_t bytes_out = 0, bytes_in = 0;
  std::int64_t peak = 0;       // bytes resident at most
  std::int64_t peak_live = 0;  // without swaps
};

// Options are checked. Throws VELO_ERR_ARGUMENT (options.budget) when some stage needs more at
// once.
swap_schedule plan_swaps(const std::vector<lifetime>& buffers, const plan_uses& uses,
                         const velo_swap_options& options);

std::string write_swaps(const swap_schedule& schedule, const velo_swap_options& options);

}  // namespace velo::memory
