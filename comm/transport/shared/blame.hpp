// Who is at fault when a deadline is over: not who is awaited and waits itself, but whom that one
// waits for. What a rank waits for each transport knows in a way of its own. Not hot: asked when
// all is over.
#pragma once

#include "comm/group/fault.hpp"

namespace velo::comm {

// Those to blame when `rank`, of so many, has waited for these too long; the same where all only
// wait for each other. is_blocked(peer, by): whether the peer waits; if so, adds those it waits
// for.
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
