// Checks of reduce_scatter: the elements of all ranks are combined in rank order, and each rank
// gets one block of the result.
#include "comm/collective/calls.hpp"

namespace velo::comm {

operation reduce_scatter_call(const caller& by, const velo_reduction& how,
                              const velo_tensor* given_in, const velo_tensor* given_out,
                              const block_sizes* sizes) {
  const buffer in = buffer_of(by.owner, given_in, "in"),
               out = buffer_of(by.owner, given_out, "out");
  operation what = call_of(
      collective::reduce_scatter,
      sizes == nullptr ? "velo_group_reduce_scatter" : "velo_group_reduce_scatter_v", in, out);
  set_reduction(what, by, how);
  what.set_count(out.count);
  what.terms.count = in.count;
  if (sizes == nullptr) {
    require_count(in, "in", out.count * by.size, "those of out for each rank");
  } else {
    what.in_blocks = blocks_of(by, sizes->counts, nullptr, {"counts", ""}, in, false);
    what.terms.counts = hash_of(what.in_blocks);
    const block last = what.in_blocks.back();
    require_count(in, "in", last.begin + last.count, "as counts says");
    require_count(out, "out", what.in_block(by.rank).count, "as counts says");
  }
  const bool in_place = out.data == in.at(what.in_block(by.rank).begin) && out.size() == in.size();
  if (!in_place) require_apart(out, "out", in, "in");
  return what;
}

}  // namespace velo::comm
