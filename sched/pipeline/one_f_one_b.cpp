// 1F1B: as GPipe, but a backward runs as soon as it can, which releases its activations.
//
// Rank r warms up with P - r - 1 forwards, the fewest that keep the later ranks busy, then
// alternates a forward and a backward, then does the remaining backwards. Bubble (P - 1)(F + B), at
// most P - r activations on rank r.
#include <algorithm>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

schedule make_1f1b(const request& wanted) {
  const std::int32_t ranks = wanted.ranks, microbatches = wanted.microbatches;
  return by_programs(wanted, {}, loop_placement(ranks, 1), [&](std::int32_t rank, program& to) {
    const std::int32_t warmup = std::min(ranks - rank - 1, microbatches);
    to.repeat(warmup, {{VELO_ACTION_F}});
    to.repeat(microbatches - warmup, {{VELO_ACTION_F}, {VELO_ACTION_B}});
    to.repeat(warmup, {{VELO_ACTION_B}});
  });
}

}  // namespace velo::sched
