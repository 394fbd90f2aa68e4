// Checks of all_reduce: the same elements of all ranks, combined in rank order, for all ranks.
#include "comm/collective/calls.hpp"

namespace velo::comm {

operation all_reduce_call(const caller& by, const velo_reduction& how, const velo_tensor* given_in,
                          const velo_tensor* given_out) {
  const buffer in = buffer_of(by.owner, given_in, "in"),
               out = buffer_of(by.owner, given_out, "out");
  operation what = call_of(collective::all_reduce, "velo_group_all_reduce", in, out);
  set_reduction(what, by, how);
  require_count(out, "out", in.count, "as many as in has");
  if (in.data != out.data || in.bytes() != out.bytes()) require_apart(out, "out", in, "in");
  what.terms.count = in.count;
  what.set_count(in.count);
  return what;
}

}  // namespace velo::comm
