// An index of free blocks by size: segregated lists with bitmaps over them, as in TLSF. It finds a
// block that is large enough and hardly larger than needed.
//
// Sizes, less than 2^45 bytes, fall into bins, 32 to a power of two, below 4 KiB one for each size.
// A bin is a list, last in, first out, linked through the blocks. A request takes the best of the
// first 8 blocks of its own bin, else any of the next bin, at most a 16th too large. Where that is
// empty its own bin is searched to the end before larger bins, so that a good fit is always found.
// A bin remembers a bound on its sizes, so that no search beyond it is repeated.
//
// Linking and unlinking take no branch, since a block's position in its list is random and a branch
// on it would be mispredicted. A block here knows the pointer that leads to it (`from`), and
// `nowhere_` stands for the next block of the last one. Cost: two bits and up to 8 blocks; for the
// search and largest(), the length of one bin.
#pragma once

#include <algorithm>
#include <cstdint>

#include "memory/pool/heap/block.hpp"
#include "memory/pool/heap/choice.hpp"

namespace velo::memory {

class free_index {
 public:
  free_index() noexcept { none_.from = &nothing_; }
  free_index(const free_index&) = delete;
  free_index& operator=(const free_index&) = delete;

  void insert(block& added) noexcept {
    bytes_ += added.size;
    link(added, bin_of(added.size));
  }
  void remove(block& present) noexcept {
    bytes_ -= present.size;
    unlink(present);
  }
  // A block of 0 bytes that may be removed although it is not in the index: it lets a caller remove
  // one block or none without a branch.
  block& none() noexcept { return none_; }

  // A block of at least that size; nullptr: there is none.
  block* find(std::uint64_t size) const noexcept {
    const std::uint32_t own = bin_of(size);
    const int next = filled_from(own + 1);
    if ((bins_[own].first != nullptr) & (size <= bins_[own].most))
      if (block* fits = find_in(own, size, next)) return fits;
    return next >= 0 ? bins_[next].first : nullptr;
  }
  // Calls f(block&) for at most so many blocks, those of the smallest bins first.
  template <class F>
  void each_of_the_smallest(int most, F&& f) const {
    for (int bin = filled_from(0); bin >= 0 && most > 0; bin = filled_from(bin + 1))
      for (block* b = bins_[bin].first; b != nullptr && most > 0; b = b->right, --most) f(*b);
  }
  block* large() const noexcept;          // a block of the largest bin; nullptr: empty
  const block* largest() const noexcept;  // a walk over that bin
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr int steps = 32;  // bins to a power of two
  static constexpr int powers = 34;
  static constexpr int count = (powers + 1) * steps;
  static constexpr int words = count / 64 + 1;  // one more, for sizes beyond all bins
  static constexpr int looks = 8;               // at blocks of the first bin

  struct bin {
    block* first;
    mutable std::uint64_t most;  // no block is larger
  };

  // The first 32 bins are of single units, then the five bits after the leading one choose among
  // the bins of each power of two, so that bins are numbered without a gap.
  static std::uint32_t bin_of(std::uint64_t size) noexcept {
    const std::uint64_t units = size / unit;
    const int shift = 58 - __builtin_clzll(units | steps);
    return static_cast<std::uint32_t>(shift) * steps + static_cast<std::uint32_t>(units >> shift);
  }

  // The first filled bin from `number` on; -1: there is none. Usually it is among the next 64,
  // whose bits are in two words.
  int filled_from(std::uint32_t number) const noexcept {
    std::uint32_t word = number / 64;
    const std::uint32_t into = number % 64;
    const std::uint64_t next64 = filled_[word] >> into | filled_[word + 1] << 1 << (63 - into);
    if (__builtin_expect(next64 != 0, 1)) return static_cast<int>(number) + __builtin_ctzll(next64);
    for (++word; word < words; ++word)
      if (filled_[word] != 0) return static_cast<int>(word * 64) + __builtin_ctzll(filled_[word]);
    return -1;
  }

  void link(block& added, std::uint32_t number) noexcept {
    bin& into = bins_[number];
    block* next = into.first;
    const choice follows(next != nullptr);
    into.most = std::max(follows(into.most, 0), added.size);
    into.first = &added;
    added.bin = static_cast<std::uint16_t>(number);
    added.right = next;
    added.from = &into.first;
    follows(next, &nowhere_)->from = &added.right;
    filled_[number / 64] |= std::uint64_t{1} << number % 64;
  }

  void unlink(block& present) noexcept {
    const std::uint32_t number = present.bin;
    block* next = present.right;
    block** from = present.from;
    const choice follows(next != nullptr);
    *from = next;
    follows(next, &nowhere_)->from = from;
    const std::uint64_t empty = (next == nullptr) & (from == &bins_[number].first);
    filled_[number / 64] &= ~(empty << number % 64);
  }

  block* find_in(std::uint32_t number, std::uint64_t size, int next) const noexcept;
  block* look_through(std::uint32_t number, std::uint64_t size) const noexcept;

  std::uint64_t filled_[words + 1] = {};
  bin bins_[count] = {};
  block nowhere_{};
  block none_{};
  block* nothing_ = nullptr;  // leads to none_
  std::uint64_t bytes_ = 0;
};

}  // namespace velo::memory
