// A pattern: which elements a rank gives each rank in a collective, and which it takes from each.
//
// It is index arithmetic alone: it knows no transport, no memory and no dtype. Two ranks agree:
// what one gives a peer has as many elements as that peer takes from it. A block that a rank gives
// itself is part of the pattern. In a reduction every block that a rank takes has the same
// elements, which are combined.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/pattern/collective.hpp"

namespace velo::comm {

// Elements of a tensor, from `begin` on.
struct block {
  std::int64_t begin = 0, count = 0;
};
using blocks = std::vector<block>;

struct pattern {
  const collective_traits& traits;
  int rank, size, root;
  std::int64_t count;       // elements of a whole tensor, and of each block of an even one
  const block* in_blocks;   // one for each rank; nullptr: `count` elements each, in order
  const block* out_blocks;  // the same

  // Whether `from` has a block for `to`, possibly an empty one.
  bool moves(int from, int to) const noexcept {
    return traits.in != layout::nothing && comm::moves(traits.root, root, from, to);
  }
  block gives(int to) const noexcept {
    return moves(rank, to) ? of(traits.in, in_blocks, to) : block();
  }
  block takes(int from) const noexcept {
    return moves(from, rank) ? of(traits.out, out_blocks, from) : block();
  }
  bool gives_others() const noexcept {
    for (int peer = 0; peer < size; ++peer)
      if (peer != rank && moves(rank, peer)) return true;
    return false;
  }
  bool takes_result() const noexcept { return traits.root != root_role::takes || rank == root; }
  // The elements of the longest block that this rank gives or takes.
  std::int64_t longest() const noexcept {
    std::int64_t most = 0;
    for (int peer = 0; peer < size; ++peer)
      most = std::max({most, gives(peer).count, takes(peer).count});
    return most;
  }

 private:
  block of(layout how, const block* each, int peer) const noexcept {
    if (how == layout::whole) return {0, count};
    return each != nullptr ? each[peer] : block{peer * count, count};
  }
};

}  // namespace velo::comm
