// The bookkeeping of a pool under its lock: the owner of each block, the sums of bytes, and the
// return of free blocks to the heaps.
//
// A pool has a heap for each lifetime. A free block may be outside of its heap: in a thread's
// cache, in the transfer cache, pending on a stream, or in the quarantine of the checked mode. This
// class moves blocks between these owners; pool_supply.hpp decides how much each of them keeps.
// Every block has exactly one owner, and sums are those of the owners. Cost: a merge for a block
// that is given back; the number of blocks for a walk.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/pool/cache/thread_caches.hpp"
#include "memory/pool/cache/transfer_cache.hpp"
#include "memory/pool/checked.hpp"
#include "memory/pool/heap/heap.hpp"
#include "memory/pool/pool_history.hpp"
#include "memory/pool/pool_log.hpp"
#include "memory/pool/stream_frees.hpp"

namespace velo::memory {

class pool_backend {
 public:
  static constexpr int lifetimes = 2;

  // Throws VELO_ERR_MEMORY.
  pool_backend(velo_pool_kind kind, bool checked, thread_caches& threads, pool_history& history,
               pool_log& log);

  bool is_checked() const noexcept { return checked_; }

  heap& heap_for(std::uint8_t lifetime) noexcept { return heaps_[lifetime]; }
  const heap& heap_for(std::uint8_t lifetime) const noexcept { return heaps_[lifetime]; }
  heap& heap_of(const void* memory) noexcept { return heaps_[heaps_[0].outside(memory) ? 1 : 0]; }
  const heap& heap_of(const void* memory) const noexcept {
    return heaps_[heaps_[0].outside(memory) ? 1 : 0];
  }
  const heap& heap_of(const block& b) const noexcept { return heaps_[b.lifetime]; }
  template <class F>
  void each_block(F&& f) const {  // f(heap, block) in the order of addresses
    for (const heap& h : heaps_)
      for (const block* b = h.first(); b != nullptr; b = b->after) f(h, *b);
  }

  // Returns a free block to its heap.
  void give(block& b) noexcept { heaps_[b.lifetime].give(b); }
  // The same, by way of the quarantine in the checked mode.
  void retire(block& b) noexcept;
  bool empty_quarantine() noexcept;  // false: it was empty
  void drain(thread_cache& own) noexcept {
    own.empty_lists([&](block& b) { give(b); });
  }
  void empty_large(thread_cache& own) noexcept;   // by its thread
  void spill_lists(thread_cache& own) noexcept;   // full ones, by their thread
  void end_thread(thread_cache& ended) noexcept;  // every block of it
  transfer_cache& transfer() noexcept { return transfer_cache_; }

  // Pending blocks, of frees on streams (stream_frees.hpp).
  bool add_pending(block& freed, core::stream& on, velo_stream handle) {
    return pending_[freed.lifetime].add(freed, on, handle);
  }
  block* take_pending(std::uint8_t lifetime, velo_stream on, std::uint64_t size,
                      std::uint64_t alignment) noexcept;
  std::uint64_t pending_bytes() const noexcept { return pending_[0].bytes() + pending_[1].bytes(); }
  std::uint64_t pending_bytes(velo_stream on) const noexcept {
    return pending_[0].bytes(on) + pending_[1].bytes(on);
  }
  const stream_frees& pending(std::uint8_t lifetime) const noexcept { return pending_[lifetime]; }

  // Returns to the heaps every free block that the calling thread may reach. False: there was none.
  bool reclaim() noexcept;
  void reclaim_passed() noexcept;  // pending blocks whose streams have passed their points

  // Returns at least so many bytes of free blocks to the system where that can be done, but not
  // those of `but`, which may be nullptr; how many.
  std::uint64_t trim(std::uint64_t bytes, block* but = nullptr) noexcept;
  // Moves at least so many bytes of free blocks to the target, as far as it goes; how many.
  std::uint64_t move_out(std::uint64_t bytes, heap::move_target& to) noexcept;
  // Ends a pool that still has blocks in use: all other memory goes back to the system.
  void close() noexcept;

  // Bytes that plans hold, which count as the pool's.
  void charge(std::uint64_t bytes) noexcept {
    charged_ += bytes;
    raise_peak();
  }
  void uncharge(std::uint64_t bytes) noexcept { charged_ -= bytes; }
  void raise_peak() noexcept { peak_reserved_ = std::max(peak_reserved_, reserved()); }

  std::uint64_t reserved() const noexcept {
    return heaps_[0].reserved() + heaps_[1].reserved() + charged_;
  }
  std::uint64_t peak_reserved() const noexcept { return peak_reserved_; }
  std::uint64_t free_bytes() const noexcept {
    return heaps_[0].free_bytes() + heaps_[1].free_bytes();
  }
  std::uint64_t trimmed_bytes() const noexcept { return trimmed_; }
  std::uint64_t largest_hole() const noexcept;  // in either heap: pages move between them
  std::uint64_t damaged() const noexcept { return damaged_; }

  struct usage {
    std::uint64_t blocks = 0, requested = 0;
  };
  usage in_use() const noexcept;  // a walk

 private:
  void release_quarantined(block& oldest) noexcept;

  heap heaps_[lifetimes];
  stream_frees pending_[lifetimes];
  checked::quarantine quarantine_;
  transfer_cache transfer_cache_;
  thread_caches& threads_;
  pool_history& history_;
  pool_log& log_;
  const bool checked_;
  std::uint64_t charged_ = 0, peak_reserved_ = 0, trimmed_ = 0;
  std::uint64_t damaged_ = 0;  // blocks written after their free
};

}  // namespace velo::memory
