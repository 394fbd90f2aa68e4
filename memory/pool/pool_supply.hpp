// The policy of a pool: where the memory of a request comes from, and when there is none.
//
// A request gets, in this order, a block pending on its own stream, a free block of the heap, one
// of what caches and passed streams held, memory of free blocks that are too small or elsewhere,
// new memory of the system. At the limit or when the system refuses, the pool waits for streams and
// asks the host to free something; only then the request fails. All calls take the pool's lock.
// Only the first two are hot.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/host/ticks.hpp"
#include "memory/pool/brief_lock.hpp"
#include "memory/pool/pool_backend.hpp"
#include "memory/pool/pool_request.hpp"

namespace velo::memory {

class pool_supply {
 public:
  pool_supply(const velo_pool_desc& desc, pool_backend& blocks, thread_caches& threads,
              pool_history& history) noexcept;

  void set_handle(const void* handle) noexcept { handle_ = handle; }

  // A block of `size` bytes, in use. Releases the lock while it waits or asks the host. Throws
  // MEMORY; of the pressure function FOREIGN and STATE.
  block* obtain(const pool_request& request, std::uint64_t size,
                std::unique_lock<brief_lock>& lock);
  // Counts bytes of a block that came from a heap without obtain().
  void count_taken(std::uint64_t size) noexcept { taken_bytes_ += size; }

  // The bytes that a thread's lists may hold. Blocks in lists do not merge and are taken before a
  // hole that fits better, so the lists of a pool's only thread hold a small share of it.
  std::int64_t list_bytes() const noexcept;

  std::uint64_t limit() const noexcept { return limit_; }
  void set_limit(std::uint64_t bytes) noexcept { limit_ = bytes; }
  bool allows(std::uint64_t more) const noexcept {  // bytes reserved, within the limit
    return limit_ == 0 || blocks_.reserved() + more <= limit_;
  }
  // Trims free blocks so that the pool with `coming` more bytes holds at most `most`, and at most
  // its limit. Returns by how many bytes it will grow.
  std::uint64_t make_room(std::uint64_t coming, std::uint64_t most) noexcept;
  std::uint64_t refused() const noexcept { return refused_; }

 private:
  block* find(const pool_request& request, std::uint64_t size) noexcept;
  block* find_new(heap& from, std::uint64_t size, std::uint64_t alignment) noexcept;
  std::uint64_t bytes_to_recycle(const heap::growth& planned, std::uint64_t size) const noexcept;
  bool back_with_free(block& grown, heap& of, const heap::growth& planned,
                      std::uint64_t bytes) noexcept;
  bool wait_for_stream(std::unique_lock<brief_lock>& lock);
  bool ask_host(std::uint64_t bytes, int& retries, std::unique_lock<brief_lock>& lock);
  [[noreturn]] void refuse(const pool_request& request);

  pool_backend& blocks_;
  thread_caches& threads_;
  pool_history& history_;
  const void* handle_ = nullptr;
  const velo_pool_pressure_fn pressure_;
  void* const pressure_user_;
  std::uint64_t limit_;            // 0: none
  std::uint64_t taken_bytes_ = 0;  // asked of heaps, retries included
  std::uint64_t recycled_ = 0;     // bytes of free blocks that replaced new memory
  std::uint64_t recycling_ticks_ = 0;
  const std::uint64_t made_at_ = core::ticks_now();
  std::uint64_t refused_ = 0;  // requests
};

}  // namespace velo::memory
