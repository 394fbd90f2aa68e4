// broadcast: the elements of one rank for all.
//
// What fits a mailbox travels in it; of two ranks the root then goes on at once. Of more it stays
// until all have come, for a third rank would not hear that a second has other terms. Else the root
// stages a slot full in each step, which all others copy out while the next is staged; or they copy
// from where it lies.
#include <algorithm>

#include "comm/collective/calls.hpp"
#include "comm/group/short_copy.hpp"
#include "comm/transport/shared/meeting.hpp"

namespace velo::comm {

operation broadcast_call(const caller& by, std::int32_t root, const velo_tensor* given) {
  const buffer x = buffer_of(by.owner, given, "x");
  operation what = call_of(collective::broadcast, "velo_group_broadcast", x, x);
  set_root(what, by, root);
  what.terms.count = what.count = x.count;
  return what;
}

void broadcast(meeting& m) {
  const int root = m.what.terms.root;
  const std::int64_t bytes = m.what.out_bytes(), most = m.slot_bytes();
  char* x = static_cast<char*>(m.what.out);
  if (bytes <= mailbox::room) {
    m.arrive(x, m.rank == root ? bytes : 0);
    if (m.rank == root && m.size == 2)
      m.leave();
    else
      m.meet();
    if (m.rank != root) copy_short(x, m.payload(root, bytes), bytes);
    return;
  }
  if (m.may_be_in_place(bytes) && m.meet_in_place({x, m.rank == root ? bytes : 0})) {
    if (m.rank != root) m.fetch(m.in_of(root, bytes), x, bytes);
    return m.pass();
  }
  const auto size_of = [&](std::int64_t step) { return std::min(most, bytes - step * most); };
  m.steps(
      {(bytes + most - 1) / most, bytes},
      [&](std::int64_t step) {
        if (m.rank == root) m.stage(x + step * most, m.mine(), size_of(step));
      },
      [&](std::int64_t step) {
        if (m.rank != root) m.fetch(m.of(root), x + step * most, size_of(step));
      });
}

}  // namespace velo::comm
