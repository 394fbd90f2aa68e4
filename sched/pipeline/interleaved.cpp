// Interleaved 1F1B, Megatron's: a rank has V chunks, far from each other in the model, which take turns.
//
// Filling and draining the pipeline goes by chunks, which are V times shorter: bubble
// (P - 1)(F + B) / V, for V times the communication. Groups of N micro-batches go through chunk 0,
// then through chunk 1, ..; backward the other way round. A last group may be shorter, but not than
// P: its next chunk's turn comes when the last rank has done this one.
#include <algorithm>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

using core::fail;
using core::text;

schedule make_interleaved(const request& wanted) {
  const std::int32_t ranks = wanted.ranks, microbatches = wanted.microbatches;
  const std::int32_t group = wanted.group, last = microbatches % group;
  if (group < ranks || group > microbatches)
    fail(VELO_ERR_ARGUMENT, "desc.group",
         text("from as many as ranks, %d, to as many as micro-batches, %d", ranks, microbatches),
         text("%d", group));
  if (last != 0 && last < ranks)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches",
         text("groups of %d, and what is left none or at least as many as ranks, %d", group, ranks),
         text("%d, which leaves %d", microbatches, last));

  const turns order = {wanted.chunks, microbatches, group};
  const std::int32_t all = microbatches * wanted.chunks;
  const auto fill = [&](std::int32_t rank, program& to) {
    const std::int32_t warmup = std::min(
        2 * (ranks - 1 - rank) + (wanted.chunks - 1) * group + (wanted.extra_warmup ? 1 : 0), all);
    to.repeat(warmup, {{VELO_ACTION_F, all_chunks}});
    to.repeat(all - warmup, {{VELO_ACTION_F, all_chunks}, {VELO_ACTION_B, all_chunks_mirrored}});
    to.repeat(warmup, {{VELO_ACTION_B, all_chunks_mirrored}});
  };
  return by_programs(wanted, order, place_in_loops(ranks, wanted.chunks), fill);
}

}  // namespace velo::sched
