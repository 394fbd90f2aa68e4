// The plan of when each buffer moves to another tier and back, for a step with known uses and a
// budget of memory.
//
// The step is a sequence of stages, each the computing between two points and the buffers that it
// needs at once; the planner simulates it (simulation.hpp). It evicts the buffer with the furthest
// next use (Belady). The smart policy chooses by size and by the number of crowded stages that an
// eviction relieves, and evicts a buffer that would return late only if there is no other. The
// joint policy simulates the step many times, with swaps alone, with recomputation alone and with
// both under several thresholds, and keeps the run with the least stall.
//
// The bound is a stall below which no plan with swaps alone can get. Between two stages the links
// must bring in the buffers used there that could not stay, and take out those that cannot stay
// longer; transfer time beyond the computing in between is lost. The bound is the largest sum of
// such losses over disjoint intervals of the step, a longest path, with buffers taken as divisible.
//
// The result contains the transfers, the stays of buffers in memory between them, and both as moves
// in the order of their dependencies, so that an executor needs no clock (swap/planned.cpp).
//
// Cost: that of one simulation; of nine or more for the joint policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/plan/solver/placement.hpp"
#include "memory/swap/plan/uses.hpp"
#include "velo/plan.h"

namespace velo::memory {

// One transfer, drop or recomputation. Seconds are those of the planned step, with its stalls.
struct swap_transfer {
  velo_swap_action action;
  std::int64_t buffer;
  std::int64_t after;   // begins after this time of the plan
  std::int64_t before;  // the first time at which the buffer is needed again
  double begin, end;
  std::int64_t stay;  // the stay that an OUT or DROP ends, or that an IN or MAKE begins
};

// An uninterrupted presence of a buffer in memory. Begin and end count the moments at which memory
// is taken or freed: the sizes of the stays at a moment add up to the resident bytes.
struct swap_stay {
  std::int64_t buffer = 0;
  std::int64_t bytes = 0;
  std::int64_t begin = 0, end = 0;
  bool leaves = false;       // true: ends by a transfer out; false: with the buffer's life
  std::int64_t offset = -1;  // the buffer's address; -1: not placed
  // The last stays at these addresses, which must be copied out first.
  std::vector<std::int32_t> room;
};

// A move of the executor. The moves between two `ends` belong to a stage. All of them may begin
// when the previous stage is over.
struct swap_move {
  enum class kind : std::uint8_t {
    take,  // a stay begins, whose contents the stage makes
    // A stay's copy to the tier begins. `stored`: the tier already has the contents; no copy runs.
    out,
    in,      // a stay begins by a copy from the tier; `stored`: the tier keeps its copy
    give,    // a stay ends with the buffer's life
    begins,  // a stage begins
    ends     // a stage ends
  };
  kind what;
  std::int32_t stay = -1;
  bool stored = false;
};

struct swap_schedule {
  std::vector<swap_transfer> transfers;  // in order of their beginnings
  std::vector<swap_stay> stays;          // in order of their beginnings
  std::vector<swap_move> moves;
  std::vector<std::int64_t> stage_ends;         // by stage: the last time that belongs to it
  std::vector<std::vector<std::int64_t>> used;  // by stage: buffers in memory during all of it
  bool placed = false;                          // the stays have offsets
  std::int64_t height = 0;                      // bytes of the arena
  double compute = 0, stall = 0, bound = 0;
  double remaking = 0;  // seconds of the stall for recomputing
  std::int64_t bytes_out = 0, bytes_in = 0;
  std::int64_t peak = 0;       // most resident bytes
  std::int64_t peak_live = 0;  // the same without swaps
};

// The options were checked. Throws VELO_ERR_ARGUMENT (options.budget) if a stage needs more at
// once.
swap_schedule plan_swaps(const std::vector<lifetime>& buffers, const plan_uses& uses,
                         const velo_swap_options& options);

std::string write_swaps(const swap_schedule& schedule, const velo_swap_options& options);

}  // namespace velo::memory
