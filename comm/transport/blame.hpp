// The ranks at fault after a timeout: the ends of the wait-for graph, rather than ranks that are
// awaited but themselves wait for others. Each transport keeps its own record of waits. Not hot: it
// runs once, when the group ends.
#pragma once

#include "comm/operation/fault.hpp"

namespace velo::comm {

// The ranks to blame after `rank`, of `ranks`, has waited too long for `awaited`; `awaited` itself
// if all of these wait for each other. is_blocked(peer, by): returns whether the peer waits, and
// adds the ranks that it waits for to `by`.
template <class IsBlocked>
rank_set to_blame(int ranks, int rank, const rank_set& awaited, IsBlocked&& is_blocked) {
  rank_set seen = awaited, blamed;
  int queue[most_ranks], begin = 0, end = 0;
  for (int peer = 0; peer < ranks; ++peer)
    if (awaited.has(peer) && peer != rank) queue[end++] = peer;
  seen.add(rank);
  while (begin < end) {
    const int one = queue[begin++];
    rank_set by;
    if (!is_blocked(one, by)) {
      blamed.add(one);
      continue;
    }
    for (int peer = 0; peer < ranks; ++peer) {
      if (!by.has(peer) || seen.has(peer)) continue;
      seen.add(peer);
      queue[end++] = peer;
    }
  }
  return blamed.lowest() >= 0 ? blamed : awaited;
}

}  // namespace velo::comm
