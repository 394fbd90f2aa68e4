// The memory pool behind velo_pool, from large to small:
//
// - a pool has a heap for each lifetime (heap/heap.hpp): a range of addresses in which blocks are
//   cut, merged, backed with memory and trimmed;
// - in front of the heap for short lives every thread has a cache (cache/thread_cache.hpp), so that
//   a block that was just freed is allocated again without a lock;
// - a transfer cache hands blocks of threads that free more than they allocate to threads that
//   allocate more than they free (cache/transfer_cache.hpp);
// - a block freed on a stream stays pending until the stream has come so far (stream_frees.hpp);
// - the checked mode (checked.hpp) goes around the caches and checks every block.
//
// An allocation and a free take the fast paths of allocate.hpp and free.hpp; the rest follows in
// allocate.cpp and free.cpp. The lists of blocks and their sums are in pool_backend.hpp, and the
// policy, where memory comes from and when there is none, in pool_supply.hpp. Thread-safe. Cost:
// the fast path is a load of the thread's cache and a list; the slow one a lock and the heap.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/handle/handle_kinds.hpp"
#include "memory/history/snapshot.hpp"
#include "memory/pool/brief_lock.hpp"
#include "memory/pool/cache/thread_caches.hpp"
#include "memory/pool/plain_functions.hpp"
#include "memory/pool/pool_backend.hpp"
#include "memory/pool/pool_history.hpp"
#include "memory/pool/pool_log.hpp"
#include "memory/pool/pool_request.hpp"
#include "memory/pool/pool_supply.hpp"
#include "velo/history.h"

namespace velo::memory {

class pool {
 public:
  explicit pool(const velo_pool_desc& desc);  // checked; throws VELO_ERR_MEMORY
  ~pool() { threads_.close(); }
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // The handle that calls of this pool come with.
  void set_handle(const void* handle) noexcept;

  // The fast paths, allocate.hpp and free.hpp. The cache of the calling thread for calls by this
  // handle; nullptr: there is none, or every call is to take the general way.
  thread_cache* cache_for(const void* handle) const noexcept {
    return cache_table::find_first(fast_pages_.load(std::memory_order_relaxed), handle);
  }
  bool take_cached(thread_cache& own, std::uint64_t bytes, std::uint8_t purpose,
                   void** memory) noexcept;
  bool take_from_heap(thread_cache& own, std::uint64_t bytes, std::uint8_t purpose,
                      void** memory) noexcept;
  bool put_cached(thread_cache& own, void* memory, std::uint64_t bytes) noexcept;
  // Publishes the use of a thread after an outcome that asks for it; whether there was a block.
  bool settle_outcome(thread_cache& own, std::uint64_t purpose,
                      thread_cache::outcome outcome) noexcept {
    if (outcome == thread_cache::outcome::higher) threads_.publish(own.counted, purpose);
    return outcome != thread_cache::outcome::none;
  }

  // The general way. Throws VELO_ERR_MEMORY, FOREIGN.
  void* allocate(const pool_request& request);
  // stream: whose queued work may use the block, or nullptr. Throws HANDLE; ARGUMENT for memory
  // that is no block in use (checked mode: of `bytes` bytes and undamaged); FULL and MEMORY of a
  // stream; then nothing is freed. True when the pool was closed and this was its last block: the
  // caller destroys it.
  bool free(void* memory, std::uint64_t bytes, velo_stream stream);

  // No more allocations. True when no block is in use, else the pool stays for their frees.
  bool close() noexcept;
  bool is_closed() const noexcept { return closed_.load(std::memory_order_relaxed); }

  // Trims until `keep` free bytes are left; how many went.
  std::uint64_t trim(std::uint64_t keep) noexcept;
  void set_limit(std::uint64_t bytes) noexcept;
  void require_not_logging() const { log_.require_outside(); }  // throws STATE
  void check() const;  // throws ARGUMENT naming the first damaged block
  void fill(velo_pool_stats& stats) noexcept;
  void fill(velo_stream of, velo_pool_stream_stats& stats) noexcept;

  // Keeps the last so many events from now on; 0: no more are added. Throws bad_alloc.
  void record(std::uint64_t events);
  // Adds a text about a block, or with nullptr about all that follows. Throws ARGUMENT for memory
  // that is no block in use, STATE when nothing is recorded, bad_alloc.
  void annotate(const void* memory, const char* text);
  snapshot take_snapshot();  // throws bad_alloc

  // Memory that a plan has behind its addresses counts as the pool's, and within the limit.
  bool charge(std::uint64_t bytes) noexcept;  // false: the limit
  void uncharge(std::uint64_t bytes) noexcept;
  // pool_supply::make_room.
  std::uint64_t make_room(std::uint64_t coming, std::uint64_t most) noexcept;
  // Whether a block of so many bytes could be had, but is not free in one piece.
  bool needs_room(std::uint64_t bytes) const noexcept;
  std::uint64_t bytes_in_use() const noexcept;  // of blocks in use or pending
  velo_pool_kind kind() const noexcept { return kind_; }

  const plain_functions& functions();  // the same ones each time; throws UNSUPPORTED, MEMORY

  // The file of shared memory that holds a block, and its offset. Throws ARGUMENT, UNSUPPORTED.
  void locate(const void* memory, std::int32_t& file, std::uint64_t& offset) const;
  // The addresses of all blocks of a lifetime, as long as the pool exists.
  const address_range& range(int lifetime) const noexcept {
    return blocks_.heap_for(static_cast<std::uint8_t>(lifetime)).range();
  }

 private:
  thread_cache* own_cache() noexcept {
    thread_cache* own = threads_.find();
    return __builtin_expect(own != nullptr, 1) ? own : make_cache();
  }
  thread_cache* make_cache() noexcept;
  static void end_thread(void* cache) noexcept;
  void drain_if_requested(thread_cache& own) noexcept {
    if (threads_.must_drain(own)) blocks_.drain(own);
  }
  bool is_recorded() const noexcept { return history_.is_recorded(); }
  void choose_path() noexcept;  // with the lock

  // allocate.cpp
  bool refill_list(thread_cache& own, std::uint64_t bytes) noexcept;
  void* allocate_slowly(thread_cache* own, const pool_request& request);
  block* take_from_transfer_cache(thread_cache& own, const pool_request& request) noexcept;

  // free.cpp
  bool put_recorded(thread_cache& own, void* memory, std::uint64_t bytes) noexcept;
  bool free_slowly(thread_cache* own, void* memory, std::uint64_t bytes, core::stream* on,
                   velo_stream handle);
  void check_block(const block& b, std::uint64_t bytes) const;
  // Throws ARGUMENT unless the memory is a block in use; with the lock.
  block& require_in_use(const void* memory) const;
  [[noreturn]] void refuse(const void* memory, const block* found) const;

  void fill_locked(velo_pool_stats& stats) const noexcept;

  std::atomic<cache_page*> fast_pages_{nullptr};  // nullptr while calls take the general way
  std::atomic<bool> closed_{false};
  pool_backend blocks_;  // its heaps next to fast_pages_, apart from what threads write
  thread_caches threads_;
  pool_history history_{threads_};
  mutable pool_log log_;
  alignas(64) mutable brief_lock lock_;  // guards all members, except as they state
  pool_supply supply_;
  std::unique_ptr<plain_functions> functions_;
  std::uint64_t left_ = 0;  // blocks in use, once it is closed
  const velo_pool_kind kind_;
  const std::uint32_t epoch_;  // of the process: a forked child has no use for the pool
};

}  // namespace velo::memory

template <>
struct velo::core::handle_traits<velo::memory::pool> {
  using handle = velo_pool;
  static constexpr handle_kind& kind = kinds::pool;
};
