// Checks of scatter: the root has a block for each rank.
#include "comm/collective/calls.hpp"

namespace velo::comm {

operation scatter_call(const caller& by, std::int32_t root, const velo_tensor* given_in,
                       const velo_tensor* given_out, const block_sizes* sizes) {
  const buffer out = buffer_of(by.owner, given_out, "out");
  buffer in{nullptr, 0, out.dtype};
  if (by.rank == root) in = buffer_of(by.owner, given_in, "in");
  operation what =
      call_of(collective::scatter, sizes == nullptr ? "velo_group_scatter" : "velo_group_scatter_v",
              in, out);
  set_root(what, by, root);
  what.set_count(out.count);
  what.terms.count = sizes == nullptr ? out.count : 0;
  what.terms.counts = sizes == nullptr ? 0 : 1;  // tells this call from the one without sizes
  if (by.rank != root) return what;
  require_dtype(out, "out", in);
  if (sizes == nullptr) {
    require_count(in, "in", out.count * by.size, "those of out for each rank");
  } else {
    what.in_blocks = blocks_of(by, sizes->counts, sizes->offsets, {"counts", "offsets"}, in, false);
    require_count(out, "out", what.in_block(by.rank).count, "as counts says");
  }
  if (out.data != in.at(what.in_block(root).begin)) require_apart(out, "out", in, "in");
  return what;
}

}  // namespace velo::comm
