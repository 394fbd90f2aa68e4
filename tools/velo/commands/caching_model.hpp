// A model of the caching allocator that frameworks use on devices, for comparison: it gives out
// addresses and counts what it would reserve, and owns no memory.
//
// Sizes are rounded to 512 bytes. Up to 1 MiB they come from segments of 2 MiB, below 10 MiB from
// segments of 20 MiB, larger ones from segments of their own, rounded to 2 MiB. An allocation takes
// the smallest free block that is large enough, the lowest among equals. The rest is split off if
// it is at least 512 bytes of a small segment, or more than 1 MiB of a large one. Freed blocks
// merge with their neighbors inside a segment; segments are never given back. One stream.
// (Constants of PyTorch's c10/cuda/CUDACachingAllocator.) O(log blocks) an operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace command {

// The least multiple of `unit` that is not below `bytes`.
constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

class caching_model {
 public:
  std::uint64_t allocate(std::uint64_t bytes);  // gives an address
  void free(std::uint64_t address);
  std::uint64_t reserved() const { return reserved_; }

 private:
  struct block {
    std::uint64_t size, segment;  // the segment: where it begins
    bool small, free;
  };
  using blocks = std::map<std::uint64_t, block>;
  using free_set = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // size, address

  free_set& free_of(const block& b) { return b.small ? small_ : large_; }

  blocks blocks_;  // by address; all of a segment, without gaps
  free_set small_, large_;
  std::uint64_t reserved_ = 0;
};

}  // namespace command
