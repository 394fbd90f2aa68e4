// From rows of actions to a schedule: its sizes and where its stages are, as far as a text leaves
// that out.
//
// Stages and micro-batches are those named, up to the highest; a stage is on the rank that first
// names it. Stages down the ranks and up again are two chains, DualPipe's, where the last rank
// computes every micro-batch of its stage on the way up before that of its stage on the way down,
// and the gradients the other way round. Numbers so high that most stages would have nothing to do
// are refused.
#pragma once

#include <vector>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// What a text says beside its rows.
struct said {
  velo_schedule_kind kind = VELO_SCHEDULE_CUSTOM;
  std::int32_t stages = 0, microbatches = 0, splits = 0, chains = 0;  // 0: nothing
  std::vector<std::vector<std::int32_t>> placement;                   // empty: nothing
};

// Throws ARGUMENT naming text.<what is said> where it contradicts the rows.
schedule assemble(std::vector<std::vector<action>> rows, const said& beside = {});

}  // namespace velo::sched
