// Free blocks by size: one that is large enough, and hardly larger than it has to be.
//
// Sizes fall into bins, 32 to a power of two, below 4 KiB one for each size; bits say which bins hold
// anything. A bin is a list, last in, first out, whose links are in the blocks themselves. Of the bin
// that a size falls into the best of the first few blocks serves it, else any of the bin behind it,
// which is at most a 16th too large; where that is empty the whole first bin is looked through before
// larger ones, so that what fits well is always found. A bin remembers what no block of it exceeds, so
// nobody looks through it twice for what it does not have. Cost: a few bits and one or two blocks,
// however many there are.
#pragma once

#include <cstdint>

#include "memory/block.hpp"

namespace velo::memory {

class free_index {
 public:
  void insert(block& added) noexcept;
  void remove(block& present) noexcept;
  void resize(block& present, std::uint64_t size) noexcept;  // a block that is in here

  block* find(std::uint64_t size) const noexcept;  // one that is as large; nullptr: none is
  block* large() const noexcept;                   // of the bin of the largest; nullptr: empty
  const block* largest() const noexcept;           // a walk over that bin
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr int steps = 32;  // bins to a power of two
  static constexpr int powers = 34;
  static constexpr int bins = (powers + 1) * steps;
  static constexpr int words = (bins + 63) / 64;
  static constexpr int looks = 8;  // at blocks of the first bin

  static int bin_of(std::uint64_t size) noexcept;
  int filled_from(int bin) const noexcept;  // the first bin from there on that holds anything; -1
  block* look_through(int bin, std::uint64_t size) const noexcept;
  void link(block& added, int bin) noexcept;
  void unlink(block& present, int bin) noexcept;

  std::uint32_t filled_words_ = 0;
  std::uint64_t filled_[words] = {};
  block* first_[bins] = {};
  mutable std::uint64_t most_[bins] = {};  // no block of the bin is larger
  std::uint64_t bytes_ = 0;
};

}  // namespace velo::memory
