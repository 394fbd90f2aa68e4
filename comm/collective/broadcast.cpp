// Checks of broadcast: the elements of the root, for all ranks.
#include "comm/collective/calls.hpp"

namespace velo::comm {

operation broadcast_call(const caller& by, std::int32_t root, const velo_tensor* given) {
  const buffer x = buffer_of(by.owner, given, "x");
  operation what = call_of(collective::broadcast, "velo_group_broadcast", x, x);
  set_root(what, by, root);
  what.terms.count = x.count;
  what.set_count(x.count);
  return what;
}

}  // namespace velo::comm
