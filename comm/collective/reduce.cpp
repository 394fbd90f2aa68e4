// Checks of reduce: the same elements of all ranks, combined in rank order, for the root.
#include "comm/collective/calls.hpp"

namespace velo::comm {

operation reduce_call(const caller& by, std::int32_t root, const velo_reduction& how,
                      const velo_tensor* given_in, const velo_tensor* given_out) {
  const buffer in = buffer_of(by.owner, given_in, "in");
  buffer out{nullptr, 0, in.dtype};
  if (by.rank == root) out = buffer_of(by.owner, given_out, "out");
  operation what = call_of(collective::reduce, "velo_group_reduce", in, out);
  set_root(what, by, root);
  if (by.rank == root) {
    require_dtype(out, "out", in);
    require_count(out, "out", in.count, "as many as in has");
    if (in.data != out.data) require_apart(out, "out", in, "in");
  }
  set_reduction(what, by, how);
  what.terms.count = in.count;
  what.set_count(in.count);
  return what;
}

}  // namespace velo::comm
