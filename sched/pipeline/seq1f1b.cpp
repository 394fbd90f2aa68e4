// Seq1F1B: 1F1B over parts of a sequence, S splits for each micro-batch.
//
// Attention reads earlier positions, so the splits of a micro-batch go forward in order and
// backward from the last. The warm-up of a rank lets the whole first micro-batch pass: P - r - 2 +
// S splits, each S times smaller than a micro-batch.
#include <algorithm>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

schedule make_seq1f1b(const request& wanted) {
  const std::int32_t ranks = wanted.ranks, splits = wanted.splits;
  const std::int32_t all = wanted.microbatches * splits;
  const auto fill = [&](std::int32_t rank, program& to) {
    constexpr program::step f{VELO_ACTION_F}, b{VELO_ACTION_B, down_groups};
    const std::int32_t warmup = std::min(ranks - rank - 2 + splits, all);
    to.repeat(warmup, {f});
    to.repeat(all - warmup, {f, b});
    to.repeat(warmup, {b});
  };
  return by_programs(wanted, {1, all, splits}, loop_placement(ranks, 1), fill);
}

}  // namespace velo::sched
