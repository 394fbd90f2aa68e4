// Interleaved ZB1P and, with one chunk, ZB-H1: 1F1B with W (the gradient of the weights) as a
// separate action.
//
// No rank waits for W, so W fills the times at which a rank would idle: rank r delays its first r W
// and does them at the end. Groups of micro-batches go through the chunks as in an interleaved
// schedule; a group has P micro-batches, or a few more so that all groups are equal. Bubble (P -
// 1)(I + max(0, F - W)) / V; P micro-batches on every rank at equal costs.
#include <algorithm>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

using core::fail;
using core::text;

schedule make_zb1p(const request& wanted) {
  const std::int32_t ranks = wanted.ranks, microbatches = wanted.microbatches;
  const std::int32_t groups = std::max(1, microbatches / ranks), group = microbatches / groups;
  if (wanted.chunks > 1 && microbatches % groups != 0)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches",
         text("a multiple of %d, the groups of at least as many as ranks, %d", groups, ranks),
         text("%d", microbatches));

  const chunk_order order = {wanted.chunks, microbatches, group};
  const std::int32_t all = microbatches * wanted.chunks;
  const auto fill = [&](std::int32_t rank, program& to) {
    using step = program::step;
    constexpr step f{VELO_ACTION_F, all_chunks}, i{VELO_ACTION_I, all_chunks_mirrored},
        w{VELO_ACTION_W, all_chunks_mirrored};
    const std::int32_t warmup = std::min((wanted.chunks - 1) * group + ranks - 1 - rank, all);
    const std::int32_t pairs = all - warmup;         // of F and I
    const std::int32_t later = std::min(rank, all);  // W delayed
    to.repeat(warmup, {f});
    to.repeat(std::min(pairs, later), {f, i});
    to.repeat(pairs - later, {f, i, w});
    to.repeat(later - pairs, {i});
    to.repeat(all - std::max(pairs, later), {i, w});
    to.repeat(later, {w});
  };
  return by_programs(wanted, order, loop_placement(ranks, wanted.chunks), fill);
}

}  // namespace velo::sched
