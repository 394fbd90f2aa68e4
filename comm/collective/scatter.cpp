// scatter: of what one rank has, each rank a part, in the order of the ranks.
//
// The root stages a section for each other rank in each step. Where the parts differ, its first
// slot begins with what is in them, for the ranks to compare with what they expect.
#include <cstring>

#include "comm/collective/calls.hpp"
#include "comm/collective/slices.hpp"

namespace velo::comm {

operation scatter_call(const caller& by, std::int32_t root, const velo_tensor* given_in,
                       const velo_tensor* given_out, const uneven* parts) {
  const buffer out = buffer_of(by.owner, given_out, "out");
  buffer in{nullptr, 0, out.dtype};
  if (by.rank == root) in = buffer_of(by.owner, given_in, "in");
  operation what =
      call_of(collective::scatter, parts == nullptr ? "velo_group_scatter" : "velo_group_scatter_v",
              in, out);
  set_root(what, by, root);
  what.count = out.count;
  what.terms.count = parts == nullptr ? out.count : 0;
  what.terms.counts = parts == nullptr ? 0 : 1;  // not what the other call does
  if (by.rank != root) return what;
  require_dtype(out, "out", in);
  if (parts == nullptr) {
    require_count(in, "in", out.count * by.size, "those of out for each rank");
  } else {
    what.in_parts = parts_of(by, parts->counts, parts->offsets, {"counts", "offsets"}, in, false);
    require_count(out, "out", what.in_part(by.rank).count, "as counts says");
  }
  if (out.data != in.at(what.in_part(root).begin)) require_apart(out, "out", in, "in");
  return what;
}

void scatter(shared_round& round) {
  const int root = round.op.terms.root;
  const char* in = static_cast<const char*>(round.op.in);
  char* out = static_cast<char*>(round.op.out);
  const std::int64_t size = round.op.out_size();
  const bool even = round.op.terms.counts == 0;
  const sections cut(round.slot_bytes(), round.size, even ? round.op.out_bytes() : 0,
                     even ? 0 : 8 * round.size);
  const auto give = [&](int rank, std::int64_t step) {
    const part p = round.op.in_part(rank);
    if (step == 0 && !even) std::memcpy(round.own_slot() + 8 * rank, &p.count, 8);
    const slice s = slice_of(p.count * size, cut.bytes(), step);
    const char* from = in + p.begin * size + s.begin;
    if (rank != root) return round.stage(from, round.own_slot() + cut.begin(root, rank), s.bytes);
    if (out + s.begin != from) round.fetch(from, out + s.begin, s.bytes);
  };
  round.run_steps(
      {slices_in(round.op.out_bytes(), cut.bytes()), cut.span()},
      [&](std::int64_t step) {
        for (int r = 0; round.rank == root && r < round.size; ++r) give(r, step);
      },
      [&](std::int64_t step) {
        if (round.rank == root) return;
        std::int64_t mine = round.op.count;
        if (step == 0 && !even) std::memcpy(&mine, round.peer_slot(root) + 8 * round.rank, 8);
        if (mine != round.op.count) round.raise_mismatch(root, round.op.count, mine);
        const slice s = slice_of(round.op.out_bytes(), cut.bytes(), step);
        round.fetch(round.peer_slot(root) + cut.begin(root, round.rank), out + s.begin, s.bytes);
      });
}

}  // namespace velo::comm
