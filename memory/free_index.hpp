// Free blocks by size: which is the smallest that is large enough, and of those the first by
// address.
//
// Sizes fall into bins, 32 to a power of two; two levels of bits say which bins hold anything. A bin
// is a treap ordered by size, then address, so that best fit is exact and costs the depth of one
// tree: one or two steps in programs as they are, the logarithm of the blocks in the worst. Nodes
// are the blocks themselves.
#pragma once

#include <cstdint>

#include "memory/block.hpp"

namespace velo::memory {

class free_index {
 public:
  void insert(block& added) noexcept;
  void remove(block& present) noexcept;

  block* best_fit(std::uint64_t size) const noexcept;  // nullptr: none
  block* largest() const noexcept;
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr int steps = 32;  // bins to a power of two
  static constexpr int powers = 44;

  struct place {
    int power, step;
  };
  static place place_of(std::uint64_t size) noexcept;

  std::uint64_t filled_powers_ = 0;
  std::uint32_t filled_steps_[powers] = {};
  block* roots_[powers][steps] = {};
  std::uint64_t bytes_ = 0;
};

}  // namespace velo::memory
