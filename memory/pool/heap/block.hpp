// The description of a block, a stretch of a heap's addresses.
//
// Descriptions lie apart from the memory they describe: free memory is never read or written, so it
// can be given back to the system, and a write past the end of a block damages no list. They are
// one cache line each. Neighbors are linked by address; a block in an index of free or pending
// blocks is linked by `from` and `right`. In a cache `left` leads to the next block of a chain, and
// `right` from the first block of a chain to the first of the next chain.
#pragma once

#include <atomic>
#include <cstdint>

#include "velo/types.h"

namespace velo::memory {

inline constexpr std::uint64_t unit = 64;     // every block begins at a multiple
inline constexpr std::uint64_t fine = 4096;   // sizes up to here go in units,
inline constexpr std::uint64_t coarse = 512;  // those above in steps of so many bytes

// The size of a block for so many bytes.
inline std::uint64_t block_size(std::uint64_t bytes) noexcept {
  const std::uint64_t step = bytes <= fine ? unit : coarse;
  const std::uint64_t size = (bytes + step - 1) & ~(step - 1);
  return size != 0 ? size : unit;
}

enum class block_state : std::uint8_t {
  unused,       // describes nothing
  in_use,       // the caller's
  cached,       // free, in the cache of a thread
  pending,      // free once the stream on which it was freed passes that point
  quarantined,  // free, checked mode: kept back to detect writes after the free
  free,         // in the heap, backed by memory
  uncommitted,  // in the heap, without memory behind it
  given_up,     // addresses that the heap has unmapped
};

struct alignas(64) block {
  std::uint64_t start;  // from the beginning of the range; of an unused block the range's size
  std::uint64_t size;   // a multiple of the unit
  // In use: bytes asked for. Like `state`, `purpose` and `on` it is written by the block's owner,
  // without a lock. Pending: its number in the stream's list. First of a chain in a cache: the
  // number of the chain's blocks.
  std::atomic<std::uint64_t> requested;
  block* before;
  block* after;
  union {
    block* left;
    block** from;  // in the index: what leads to this block
  };
  union {
    block* right;
    std::atomic<velo_stream> on;  // in use: whose work uses it; nullptr: the host's calls in order
  };
  std::atomic<block_state> state;
  std::atomic<std::uint8_t> purpose;
  std::uint8_t lifetime;  // which heap it belongs to
  bool zero;              // just backed: known to be zero
  std::uint16_t front;    // in units, from start to the first byte of the caller
  std::uint16_t bin;      // in the index: whose list it is in

  bool is(block_state s) const noexcept { return state.load(std::memory_order_relaxed) == s; }
  void become(block_state s) noexcept { state.store(s, std::memory_order_relaxed); }
  // The start of a block that another thread may own, and may be cutting at the same time.
  bool begins_at(std::uint64_t at) const noexcept {
    return __atomic_load_n(&start, __ATOMIC_RELAXED) == at;
  }
  void begin_at(std::uint64_t at) noexcept { __atomic_store_n(&start, at, __ATOMIC_RELAXED); }
  // Becomes the caller's.
  void hand_out(std::uint64_t bytes, std::uint8_t to, velo_stream stream = nullptr) noexcept {
    become(block_state::in_use);
    requested.store(bytes, std::memory_order_relaxed);
    purpose.store(to, std::memory_order_relaxed);
    on.store(stream, std::memory_order_relaxed);
  }
  std::uint64_t asked() const noexcept { return requested.load(std::memory_order_relaxed); }
  std::uint64_t end() const noexcept { return start + size; }
  std::uint64_t first() const noexcept { return start + std::uint64_t{front} * unit; }
};
static_assert(sizeof(block) == 64);

}  // namespace velo::memory
