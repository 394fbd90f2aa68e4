// DualPipeV and DualPipe, by DeepSeek: two streams of micro-batches pass each rank, and the forward
// of one is fused with the backward of the other, which hides its communication.
//
// In DualPipeV a rank has two chunks, one on the way down the ranks and one on the way up. DualPipe
// is the same on half of the ranks, mirrored: micro-batches enter at both ends, half of them at
// each, and every rank has a stage of both directions (twice the parameters). In DualPipe with P
// ranks and M micro-batches, ranks h and P - 1 - h have the row of rank h of DualPipeV with P / 2
// ranks and M / 2 micro-batches, so one function makes both. Stages from P on belong to DualPipe's
// second direction, which enters at stage P; each direction counts its micro-batches from 0.
//
// At the end, W is delayed to where a rank would wait: `detach`. Without it memory falls sooner and
// ranks idle more. A rank idles at most (P - 1)(FB + B - 3W), without detach (P - 1)(FB + B - W).
#include <algorithm>
#include <utility>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;
using step = program::step;

constexpr step f0{VELO_ACTION_F, 0}, i0{VELO_ACTION_I, 0}, w0{VELO_ACTION_W, 0},
    b0{VELO_ACTION_B, 0};
constexpr step f1{VELO_ACTION_F, 1}, i1{VELO_ACTION_I, 1}, w1{VELO_ACTION_W, 1},
    b1{VELO_ACTION_B, 1};
constexpr step f0_b1{VELO_ACTION_FB, 0, 1}, f1_b0{VELO_ACTION_FB, 1, 0};

// Appends `turns` W in the order of their I, alternating between the chunks, then the remaining W
// of chunk 0. Each is followed by an I of chunk 0 as long as there is one.
void drain(std::int32_t turns, bool first_is_1, std::int32_t all, std::int32_t followed,
           program& to) {
  const step a = first_is_1 ? w1 : w0, b = first_is_1 ? w0 : w1;
  const std::int32_t mixed = std::min(turns, followed);
  to.repeat(mixed / 2, {a, i0, b, i0});
  if (mixed % 2 == 1) to.repeat(1, {a, i0});
  to.repeat(followed - mixed, {w0, i0});
  const std::int32_t left = turns - mixed;  // alternating W without an I behind them
  const step next = mixed % 2 == 0 ? a : b, after = mixed % 2 == 0 ? b : a;
  to.repeat(left / 2, {next, after});
  if (left % 2 == 1) to.repeat(1, {next});
  to.repeat(all - std::max(turns, followed), {w0});
}

void fill_rank(std::int32_t ranks, std::int32_t microbatches, std::int32_t r, bool detach,
               program& to) {
  const std::int32_t behind = ranks - r - 1, here = r + 1;
  to.repeat(2 * behind, {f0});
  to.repeat(here, {f0, f1});
  to.repeat(behind, {i1, w1, f1});
  std::int32_t steady = microbatches - 2 * ranks + here;
  if (steady > 0 && behind == 0) {  // the first FB of the last rank would wait for itself
    to.repeat(1, {f0, b1, f1_b0});
    --steady;
  }
  to.repeat(steady, {f0_b1, f1_b0});
  to.repeat(behind, {b1, f1_b0});
  if (!detach) {
    to.repeat(here, {b1, b0});
    to.repeat(behind, {b0});
    return;
  }
  const std::int32_t whole = here / 2;
  const bool odd = here % 2 == 1;
  to.repeat(whole, {b1, b0});
  if (odd) to.repeat(1, {b1, i0});
  to.repeat(here - whole - (odd ? 1 : 0), {i1, i0});
  drain(here, !odd, ranks, behind, to);
}

}  // namespace

schedule make_dualpipev(const request& wanted) {
  const std::int32_t ranks = wanted.ranks, microbatches = wanted.microbatches;
  if (microbatches < 2 * ranks - 1)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches", text("at least 2P - 1, %d", 2 * ranks - 1),
         text("%d", microbatches));
  return by_programs(wanted, {}, v_placement(ranks, 2), [&](std::int32_t rank, program& to) {
    fill_rank(ranks, microbatches, rank, wanted.detach, to);
  });
}

schedule make_dualpipe(const request& wanted) {
  const std::int32_t ranks = wanted.ranks, microbatches = wanted.microbatches, half = ranks / 2;
  if (ranks % 2 != 0) fail(VELO_ERR_ARGUMENT, "desc.ranks", "an even number", text("%d", ranks));
  if (microbatches % 2 != 0 || microbatches < 2 * ranks)
    fail(VELO_ERR_ARGUMENT, "desc.microbatches", text("an even number from 2P, %d", 2 * ranks),
         text("%d", microbatches));
  auto stages = v_placement(ranks, 2);
  for (std::int32_t rank = half; rank < ranks; ++rank) std::swap(stages[rank][0], stages[rank][1]);
  const auto fill = [&](std::int32_t rank, program& to) {
    fill_rank(half, microbatches / 2, std::min(rank, ranks - 1 - rank), wanted.detach, to);
  };
  return by_programs(wanted, {}, std::move(stages), fill);
}

}  // namespace velo::sched
