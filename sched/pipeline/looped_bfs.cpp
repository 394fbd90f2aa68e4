// Looped BFS: a rank has V chunks, and all micro-batches go through one before the next.
//
// A stage gathers its parameters and reduces its gradients once a step, for all micro-batches
// together. Bubble (P - 1)(F + B) / V for M >= P; all M micro-batches are held.
#include "sched/pipeline/generate.hpp"

namespace velo::sched {

schedule make_looped_bfs(const request& wanted) {
  const chunk_order order = {wanted.chunks, wanted.microbatches, wanted.microbatches};
  const std::int32_t all = wanted.microbatches * wanted.chunks;
  const auto fill = [&](std::int32_t, program& to) {
    to.repeat(all, {{VELO_ACTION_F, all_chunks}});
    to.repeat(all, {{VELO_ACTION_B, all_chunks_mirrored}});
  };
  return by_programs(wanted, order, loop_placement(wanted.ranks, wanted.chunks), fill);
}

}  // namespace velo::sched
