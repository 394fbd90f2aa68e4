// Nano-pipe, by MindSpeed: an interleaved schedule in which ranks that start their backwards early
// delay W.
//
// Rank r has fewer warm-up forwards than rank 0. Equally many of its first backwards do only I;
// their W come at the end, where the rank waits for nothing. Other ranks then get their gradients
// earlier. The inputs of these W are held until then; `swap` moves them to the host after each I
// and back after a backward in the middle of the last phase.
#include <algorithm>

#include "sched/pipeline/interleaved.hpp"

namespace velo::sched {
namespace {

using step = program::step;

constexpr step f{VELO_ACTION_F, all_chunks}, b{VELO_ACTION_B, all_chunks_mirrored},
    i{VELO_ACTION_I, all_chunks_mirrored}, w{VELO_ACTION_W, all_chunks_mirrored},
    out{VELO_ACTION_OFFLOAD, all_chunks_mirrored}, in{VELO_ACTION_RELOAD, all_chunks_mirrored};

// Numbers of backwards: all; those paired with a forward; those whose W is delayed; those before
// the copies back from the host.
struct counts {
  std::int32_t all, paired, delayed, before;
};

// Appends backwards [from, to), with or without forwards: I as long as W are delayed, then B.
void back(const counts& of, bool swap, std::int32_t from, std::int32_t to, program& add) {
  const bool forward = from < of.paired;
  const std::int32_t delayed = std::max(0, std::min(of.delayed, to) - from);
  if (forward && swap)
    add.repeat(delayed, {f, i, out});
  else if (forward)
    add.repeat(delayed, {f, i});
  else if (swap)
    add.repeat(delayed, {i, out});
  else
    add.repeat(delayed, {i});
  if (forward)
    add.repeat(to - from - delayed, {f, b});
  else
    add.repeat(to - from - delayed, {b});
}

}  // namespace

schedule make_nanopipe(const request& wanted) {
  const chunk_order order = interleaved_order(wanted);
  const std::int32_t all = wanted.microbatches * wanted.chunks;
  const auto fill = [&](std::int32_t rank, program& to) {
    const std::int32_t warmup = interleaved_warmup(wanted, rank), paired = all - warmup;
    const std::int32_t delayed = interleaved_warmup(wanted, 0) - warmup;
    const std::int32_t middle = std::max(paired + 1, (all + paired) / 2) + 1;
    const counts of = {all, paired, delayed, std::min(all, std::max(middle, delayed))};
    to.repeat(warmup, {f});
    back(of, wanted.swap, 0, paired, to);
    back(of, wanted.swap, paired, of.before, to);
    if (wanted.swap) to.repeat(delayed, {in});
    back(of, wanted.swap, of.before, all, to);
    to.begin_weights();
    to.repeat(delayed, {w});
  };
  return by_programs(wanted, order, loop_placement(wanted.ranks, wanted.chunks), fill);
}

}  // namespace velo::sched
