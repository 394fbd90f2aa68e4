// The ranks at fault when a deadline has passed: the ends of the wait-for graph, not the ranks that
// are awaited but themselves wait for others. Each transport has its own record of who waits for
// whom. Not hot: it runs once, when the group ends.
#pragma once

#include "comm/group/fault.hpp"

namespace velo::comm {

// The ranks to blame after `rank`, of `ranks`, has waited too long for the awaited ones; these
// themselves if all wait for each other. is_blocked(peer, by): whether the peer waits; it adds the
// ranks for which that peer waits to `by`.
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
