// Checks of gather: the elements of every rank, in rank order, for the root.
#include "comm/collective/calls.hpp"

namespace velo::comm {

operation gather_call(const caller& by, std::int32_t root, const velo_tensor* given_in,
                      const velo_tensor* given_out, const block_sizes* sizes) {
  const buffer in = buffer_of(by.owner, given_in, "in");
  buffer out{nullptr, 0, in.dtype};
  if (by.rank == root) out = buffer_of(by.owner, given_out, "out");
  operation what = call_of(collective::gather,
                           sizes == nullptr ? "velo_group_gather" : "velo_group_gather_v", in, out);
  set_root(what, by, root);
  what.set_count(in.count);
  what.terms.count = sizes == nullptr ? in.count : 0;
  what.terms.counts = sizes == nullptr ? 0 : 1;  // tells this call from the one without sizes
  if (by.rank != root) return what;
  require_dtype(out, "out", in);
  if (sizes == nullptr) {
    require_count(out, "out", in.count * by.size, "those of in for each rank");
  } else {
    what.out_blocks =
        blocks_of(by, sizes->counts, sizes->offsets, {"counts", "offsets"}, out, true);
    require_count(in, "in", what.out_block(by.rank).count, "as counts says");
  }
  if (in.data != out.at(what.out_block(root).begin)) require_apart(out, "out", in, "in");
  return what;
}

}  // namespace velo::comm
