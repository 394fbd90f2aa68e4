// A model of the caching allocator that frameworks use on devices, for comparison: it gives out
// addresses and counts what it would reserve, and owns no memory.
//
// Sizes are rounded to 512 bytes. Up to 1 MiB they come from segments of 2 MiB, below 10 MiB from
// segments of 20 MiB, larger ones from segments of their own, rounded to 2 MiB. The least free
// block that is large enough is taken, the lowest among equals; of a small segment what is left
// over is split off when it is 512 bytes or more, of a large one when it is more than 1 MiB. Freed
// blocks merge with their neighbors inside a segment; segments are never given back. One stream.
// (Constants of PyTorch's c10/cuda/CUDACachingAllocator.) O(log blocks) an operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace command {

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
