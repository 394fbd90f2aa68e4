// Checks of all_to_all: every rank has a block for each rank.
#include <algorithm>

#include "comm/collective/calls.hpp"
#include "core/failure.hpp"

namespace velo::comm {
namespace {

bool same_blocks(const blocks& a, const blocks& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const block& x, const block& y) {
           return x.begin == y.begin && x.count == y.count;
         });
}

}  // namespace

operation all_to_all_call(const caller& by, const velo_tensor* given_in,
                          const velo_tensor* given_out, const block_sizes* in_sizes,
                          const block_sizes* out_sizes) {
  const buffer in = buffer_of(by.owner, given_in, "in"),
               out = buffer_of(by.owner, given_out, "out");
  const bool even = in_sizes == nullptr;
  operation what = call_of(collective::all_to_all,
                           even ? "velo_group_all_to_all" : "velo_group_all_to_all_v", in, out);
  require_dtype(out, "out", in);
  if (even) {
    if (in.count % by.size != 0)
      core::fail(VELO_ERR_SHAPE, "in", core::text("a multiple of the %d ranks", by.size),
                 core::concat(in.count, " elements"));
    require_count(out, "out", in.count, "as many as in has");
    what.terms.count = in.count / by.size;
    what.set_count(what.terms.count);
  } else {
    what.in_blocks =
        blocks_of(by, in_sizes->counts, in_sizes->offsets, {"in_counts", "in_offsets"}, in, false);
    what.out_blocks = blocks_of(by, out_sizes->counts, out_sizes->offsets,
                                {"out_counts", "out_offsets"}, out, true);
    what.set_count(what.in_block(by.rank).count);
    what.terms.counts = 1;  // tells this call from the one without sizes
    if (what.count != what.out_block(by.rank).count)
      core::fail(VELO_ERR_ARGUMENT, core::text("out_counts[%d]", by.rank),
                 core::concat(what.count, ", as in_counts says"),
                 core::number(what.out_block(by.rank).count));
  }
  if (in.data != out.data || !same_blocks(what.in_blocks, what.out_blocks))
    require_apart(out, "out", in, "in");
  return what;
}

}  // namespace velo::comm
