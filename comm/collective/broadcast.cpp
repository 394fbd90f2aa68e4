// broadcast: the elements of one rank for all.
//
// What fits a mailbox travels in it; of two ranks the root then goes on at once. Of more it stays
// until all have come, for a third rank would not hear that a second has other terms. Else the root
// stages a slot full in each step, which all others copy out while the next is staged; or they copy
// from where it lies.
#include <algorithm>

#include "comm/collective/calls.hpp"
#include "comm/group/short_copy.hpp"
#include "comm/transport/shared/shared_round.hpp"

namespace velo::comm {

operation broadcast_call(const caller& by, std::int32_t root, const velo_tensor* given) {
  const buffer x = buffer_of(by.owner, given, "x");
  operation what = call_of(collective::broadcast, "velo_group_broadcast", x, x);
  set_root(what, by, root);
  what.terms.count = what.count = x.count;
  return what;
}

void broadcast(shared_round& round) {
  const int root = round.op.terms.root;
  const std::int64_t bytes = round.op.out_bytes(), most = round.slot_bytes();
  char* x = static_cast<char*>(round.op.out);
  if (bytes <= mailbox::room) {
    round.post(x, round.rank == root ? bytes : 0);
    if (round.rank == root && round.size == 2)
      round.defer_wait();
    else
      round.wait_all();
    if (round.rank != root) copy_short(x, round.payload(root, bytes), bytes);
    return;
  }
  if (round.may_read_in_place(bytes) &&
      round.exchange_locations({x, round.rank == root ? bytes : 0})) {
    if (round.rank != root) round.fetch(round.peer_in(root, bytes), x, bytes);
    return round.finish_reads();
  }
  const auto size_of = [&](std::int64_t step) { return std::min(most, bytes - step * most); };
  round.run_steps(
      {(bytes + most - 1) / most, bytes},
      [&](std::int64_t step) {
        if (round.rank == root) round.stage(x + step * most, round.own_slot(), size_of(step));
      },
      [&](std::int64_t step) {
        if (round.rank != root) round.fetch(round.peer_slot(root), x + step * most, size_of(step));
      });
}

}  // namespace velo::comm
