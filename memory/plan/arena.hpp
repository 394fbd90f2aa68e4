// The addresses of a plan, and the memory behind them.
//
// The arena is one range of addresses, as long as the plan's height. It knows the begin and end of
// every block in use and gives out an address only if it is free: whatever the program does, two
// blocks never overlap. A granule is backed at the first use of its addresses and stays backed;
// trim() returns memory of unused granules. Not thread-safe. Cost: a search among the blocks in
// use, and a bit for each granule while some are not backed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "memory/pool/heap/address_range.hpp"

namespace velo::memory {

class plan_arena {
 public:
  struct block {
    std::uint64_t end;        // the offset behind it
    std::uint64_t shown;      // the offset of the caller's bytes
    std::uint64_t requested;  // bytes
    bool pending;             // freed on a stream that has not come so far
  };

  plan_arena(velo_pool_kind kind, std::uint64_t bytes);  // throws VELO_ERR_MEMORY

  // Makes [offset, offset + bytes) a block. The caller's memory begins at the first multiple of
  // `alignment` in it. Returns false if some of it is in use.
  bool take(std::uint64_t offset, std::uint64_t bytes, std::uint64_t requested,
            std::uint64_t alignment);
  std::uint64_t missing(std::uint64_t offset) const noexcept;  // bytes of a block without memory
  char* back(std::uint64_t offset) noexcept;  // backs a block; nullptr: the system has no more

  bool holds(const void* memory) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const char*>(memory) - range_.begin()) <
           range_.size();
  }
  // The offset of the block whose first byte was given to the caller. Throws ARGUMENT if there is
  // none.
  std::uint64_t find(const void* memory) const;
  block& at(std::uint64_t offset) noexcept { return live_.find(offset)->second; }
  void give(std::uint64_t offset) noexcept;

  // Releases the memory of gaps, the largest first, until `bytes` bytes are released or none is
  // left; returns the released bytes.
  std::uint64_t trim(std::uint64_t bytes) noexcept;

  void leave() noexcept { range_.leave(); }  // what is mapped stays so
  bool empty() const noexcept { return live_.empty(); }
  std::uint64_t reserved() const noexcept { return reserved_; }
  std::uint64_t requested() const noexcept { return requested_; }

 private:
  // Granules first to last - 1.
  struct run {
    std::uint64_t first = 0, last = 0;
  };
  run granules(std::uint64_t begin, std::uint64_t end) const noexcept {
    return {begin / range_.granule(), (end + range_.granule() - 1) / range_.granule()};
  }
  bool change(run of, bool commit) noexcept;
  std::uint64_t skip(run of, bool state) const noexcept;
  std::uint64_t count(run of) const noexcept;
  run widest_gap() const noexcept;

  address_range range_;
  std::map<std::uint64_t, block> live_;  // by begin
  std::vector<std::uint64_t> backed_;    // a bit for each granule
  std::uint64_t whole_;                  // bytes, when every address has memory
  std::uint64_t reserved_ = 0, requested_ = 0;
};

}  // namespace velo::memory
