// Checks of all_gather: the elements of every rank, in rank order, for all ranks.
#include "comm/collective/calls.hpp"

namespace velo::comm {

operation all_gather_call(const caller& by, const velo_tensor* given_in,
                          const velo_tensor* given_out, const block_sizes* sizes) {
  const buffer in = buffer_of(by.owner, given_in, "in"),
               out = buffer_of(by.owner, given_out, "out");
  operation what =
      call_of(collective::all_gather,
              sizes == nullptr ? "velo_group_all_gather" : "velo_group_all_gather_v", in, out);
  require_dtype(out, "out", in);
  what.terms.count = in.count;
  what.set_count(in.count);
  if (sizes == nullptr) {
    require_count(out, "out", in.count * by.size, "those of in for each rank");
  } else {
    what.out_blocks =
        blocks_of(by, sizes->counts, sizes->offsets, {"counts", "offsets"}, out, true);
    require_count(in, "in", what.out_block(by.rank).count, "as counts says");
    what.terms.count = 0;
    what.terms.counts = hash_of(what.out_blocks);
  }
  if (in.data != out.at(what.out_block(by.rank).begin)) require_apart(out, "out", in, "in");
  return what;
}

}  // namespace velo::comm
