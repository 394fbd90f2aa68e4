// gather: what each rank has, side by side in the order of the ranks, for one rank.
//
// Each rank but the root stages a slot full of its elements in each step, and the root copies all.
#include "comm/collective/calls.hpp"
#include "comm/collective/slices.hpp"

namespace velo::comm {

operation gather_call(const caller& by, std::int32_t root, const velo_tensor* given_in,
                      const velo_tensor* given_out, const uneven* parts) {
  const buffer in = buffer_of(by.owner, given_in, "in");
  buffer out{nullptr, 0, in.dtype};
  if (by.rank == root) out = buffer_of(by.owner, given_out, "out");
  operation what = call_of(collective::gather,
                           parts == nullptr ? "velo_group_gather" : "velo_group_gather_v", in, out);
  set_root(what, by, root);
  what.count = in.count;
  what.terms.count = parts == nullptr ? in.count : 0;
  what.terms.counts = parts == nullptr ? 0 : 1;  // not what the other call does
  if (by.rank != root) return what;
  require_dtype(out, "out", in);
  if (parts == nullptr) {
    require_count(out, "out", in.count * by.size, "those of in for each rank");
  } else {
    what.out_parts = parts_of(by, parts->counts, parts->offsets, {"counts", "offsets"}, out, true);
    require_count(in, "in", what.out_part(by.rank).count, "as counts says");
  }
  if (in.data != out.at(what.out_part(root).begin)) require_apart(out, "out", in, "in");
  return what;
}

void gather(shared_round& round) {
  const int root = round.op.terms.root;
  const char* in = static_cast<const char*>(round.op.in);
  char* out = static_cast<char*>(round.op.out);
  const std::int64_t size = round.op.in_size(), most = round.slot_bytes(),
                     own = round.op.in_bytes();
  const auto take = [&](int rank, std::int64_t step) {
    const part p = round.op.out_part(rank);
    if (step == 0 && round.number_of(rank) != p.count)
      round.raise_mismatch(rank, p.count, round.number_of(rank));
    const slice s = slice_of(p.count * size, most, step);
    char* to = out + p.begin * size + s.begin;
    const char* from = rank == round.rank ? in + s.begin : round.peer_slot(rank);
    if (from != to) round.fetch(from, to, s.bytes);
  };
  round.run_steps(
      {slices_in(own, most), round.op.terms.counts == 0 ? own : most, round.op.count},
      [&](std::int64_t step) {
        const slice s = slice_of(own, most, step);
        if (round.rank != root) round.stage(in + s.begin, round.own_slot(), s.bytes);
      },
      [&](std::int64_t step) {
        for (int r = 0; round.rank == root && r < round.size; ++r) take(r, step);
      });
}

}  // namespace velo::comm
