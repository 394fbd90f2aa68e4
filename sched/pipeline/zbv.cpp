// ZB-V: two chunks on each rank, down the ranks and up again, with separate W; no rank idles at
// equal costs.
//
// A micro-batch ends on the rank where it began, so backward begins there early, and the memory of
// both chunks together is the same on every rank: P micro-batches. At F = I = W every rank works
// from its first action to its last, and the first rank never waits. The bubble by wall time is (P
// - 1)F / 2, which the last rank waits for its first input.
//
// The order is that of max(2P - 1, M) micro-batches, without the micro-batches beyond M.
#include <algorithm>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

schedule make_zbv(const request& wanted) {
  const std::int32_t ranks = wanted.ranks;
  const std::int32_t all = std::max(2 * ranks - 1, wanted.microbatches);
  const auto fill = [&](std::int32_t r, program& to) {
    using step = program::step;
    constexpr step f0{VELO_ACTION_F, 0}, i0{VELO_ACTION_I, 0}, w0{VELO_ACTION_W, 0};
    constexpr step f1{VELO_ACTION_F, 1}, i1{VELO_ACTION_I, 1}, w1{VELO_ACTION_W, 1};
    to.leave_out_from(wanted.microbatches);
    to.repeat(2 * (ranks - r) - 1, {f0});
    to.repeat(r, {f1, f0});
    to.repeat(ranks - r, {f1, i1, w1});
    to.repeat(all - (2 * ranks - 1 - r), {f0, i0, w0, f1, i1, w1});
    to.repeat(ranks - 1 - r, {i0, w0, f1, i1, w1});
    to.repeat(r, {i0, i1});
    to.repeat(ranks - r, {i0, w0});
    to.repeat(r, {w1});
    to.repeat(r, {w0});
  };
  return by_programs(wanted, {}, v_placement(ranks, 2), fill);
}

}  // namespace velo::sched
