// Makes a schedule of rows of actions. It derives the sizes and the placement of stages that a text
// omits.
//
// Stages and micro-batches are counted up to the highest one named, and a stage is on the first
// rank that names it. Stages that go down the ranks and up again form two chains, as in DualPipe,
// if the last rank computes every micro-batch of its upward stage before that of its downward
// stage, and gradients in the opposite order. Numbers are refused if they are so high that most
// stages would have no actions.
#pragma once

#include <vector>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// The sizes that a text states beside its rows.
struct stated_sizes {
  velo_schedule_kind kind = VELO_SCHEDULE_CUSTOM;
  std::int32_t stages = 0, microbatches = 0, splits = 0, chains = 0;  // 0: nothing
  std::vector<std::vector<std::int32_t>> placement;                   // empty: nothing
};

// Throws ARGUMENT naming text.<member> if a stated size contradicts the rows.
schedule assemble(std::vector<std::vector<action>> rows, const stated_sizes& beside = {});

}  // namespace velo::sched
