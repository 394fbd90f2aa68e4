// Free blocks by size: segregated lists with bits over them, as in TLSF. It finds a block that is large
// enough, and hardly larger than it has to be.
//
// Sizes, less than 2^45 bytes, fall into bins, 32 to a power of two, below 4 KiB one for each size. A bin
// is a list, last in, first out, linked through the blocks. A request takes the best of the first 8
// blocks of its own bin, else any of the next bin, at most a 16th too large; where that is empty its own
// bin is searched to the end before larger ones, so that what fits well is always found. A bin remembers
// a bound on its sizes, so that no search for more is repeated. Cost: two bits and up to 8 blocks; of
// the search and of largest(), the length of one bin.
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
