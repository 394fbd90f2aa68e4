// Interleaved 1F1B, by Megatron: a rank has V chunks, far from each other in the model, which
// alternate.
//
// The pipeline fills and drains by chunks, which are V times shorter: bubble (P - 1)(F + B) / V,
// for V times the communication. Groups of N micro-batches go through chunk 0, then through chunk
// 1, and so on; backward in the opposite order. The last group may have fewer than N micro-batches
// but not fewer than P: its first micro-batch must have left the last rank before rank 0 begins the
// next chunk.
//
// One forward more in the warm-up makes a forward and the backward behind it belong to different
// micro-batches, which do not wait for each other. `overlap` fuses them into one FB, so that the
// messages of one to its experts hide behind the arithmetic of the other
// (sched/sublayers/sublayer_order.hpp).
#include "sched/pipeline/interleaved.hpp"

#include <algorithm>

namespace velo::sched {

using core::fail;
using core::text;

chunk_order interleaved_order(const request& wanted) {
  const std::int32_t ranks = wanted.ranks, microbatches = wanted.microbatches;
  const std::int32_t group = wanted.group, last = microbatches % group;
  if (microbatches < ranks)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches", text("at least as many as ranks, %d", ranks),
         text("%d", microbatches));
  if (group < ranks || group > microbatches)
    fail(VELO_ERR_ARGUMENT, "desc.group",
         text("from as many as ranks, %d, to as many as micro-batches, %d", ranks, microbatches),
         text("%d", group));
  if (last != 0 && last < ranks)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches",
         group == ranks
             ? text("a multiple of the ranks, %d", ranks)
             : text("a multiple of the group, %d, or at least %d more (the ranks)", group, ranks),
         text("%d, which leaves %d", microbatches, last));
  return {wanted.chunks, microbatches, group};
}

std::int32_t interleaved_warmup(const request& wanted, std::int32_t rank) {
  return std::min(2 * (wanted.ranks - 1 - rank) + (wanted.chunks - 1) * wanted.group +
                      (wanted.extra_warmup || wanted.overlap ? 1 : 0),
                  wanted.microbatches * wanted.chunks);
}

schedule make_interleaved(const request& wanted) {
  const chunk_order order = interleaved_order(wanted);
  const std::int32_t all = wanted.microbatches * wanted.chunks;
  const auto fill = [&](std::int32_t rank, program& to) {
    using step = program::step;
    constexpr step f{VELO_ACTION_F, all_chunks}, b{VELO_ACTION_B, all_chunks_mirrored};
    const std::int32_t warmup = interleaved_warmup(wanted, rank);
    to.repeat(warmup, {f});
    if (wanted.overlap)
      to.repeat(all - warmup, {{VELO_ACTION_FB, all_chunks, all_chunks_mirrored}});
    else
      to.repeat(all - warmup, {f, b});
    to.repeat(warmup, {b});
  };
  return by_programs(wanted, order, loop_placement(wanted.ranks, wanted.chunks), fill);
}

}  // namespace velo::sched
