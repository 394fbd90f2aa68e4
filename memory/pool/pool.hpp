// The memory pool behind velo_pool, from large to small:
//
// - a pool has a heap for each lifetime (heap.hpp): a range of addresses in which blocks are cut,
//   merged, backed with memory and let go of it;
// - in front of the heap for short lives every thread has a cache (thread_cache.hpp), so that
//   taking again what was just given back needs no lock;
// - what one thread frees too much of goes to others that need it without the heap (exchange.hpp);
// - what is freed on a stream waits behind the heap until the stream has come so far
//   (stream_frees.hpp);
// - the checked mode (checked.hpp) goes around the caches and looks after every block.
//
// Calls that ask for nothing special take a way of their own, which calls no function: cache_for().
// Where a request finds nothing, the pool takes in what it has lent out (caches, passed streams),
// then memory of free blocks elsewhere, then the system's; at the limit or when the system refuses
// it waits for streams and asks the host, and only then fails. Thread-safe. Cost: the fast path is
// a load of the thread's cache and a list; the slow one a lock and the heap.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/handle/handle_kinds.hpp"
#include "core/stream/stream.hpp"
#include "core/text/log.hpp"
#include "memory/history/history.hpp"
#include "memory/history/snapshot.hpp"
#include "memory/pool/brief_lock.hpp"
#include "memory/pool/cache/cache_table.hpp"
#include "memory/pool/checked.hpp"
#include "memory/pool/cache/transfer_cache.hpp"
#include "memory/pool/heap/heap.hpp"
#include "memory/pool/plain_functions.hpp"
#include "memory/pool/stream_frees.hpp"
#include "memory/pool/cache/tally.hpp"
#include "memory/pool/cache/thread_cache.hpp"
#include "velo/history.h"

namespace velo::memory {

// A request whose numbers have been checked.
struct wanted {
  std::uint64_t bytes;
  std::uint64_t alignment;   // a power of two >= 64
  velo_stream on = nullptr;  // a queued stream, or nullptr: the order of the host's calls
  std::uint8_t purpose = VELO_PURPOSE_OTHER;
  std::uint8_t lifetime = VELO_LIFETIME_DEFAULT;
  bool zero = false;
};

class pool {
 public:
  explicit pool(const velo_pool_desc& desc);  // checked; throws VELO_ERR_MEMORY
  ~pool();
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // What the calling thread has at hand, for calls by this handle, which serve() told: nullptr
  // where it has nothing, and as long as something sets the pool's calls apart.
  thread_cache* cache_for(const void* handle) const noexcept {
    return cache_table::find_first(quick_.load(std::memory_order_relaxed), handle);
  }
  void serve(const void* handle) noexcept;

  // A block out of a cache that cache_for() gave, for a request with a purpose alone. False: there
  // is none, or more is to be done, and allocate() does it.
  bool take_at_hand(thread_cache& mine, std::uint64_t bytes, std::uint8_t purpose,
                    void** memory) noexcept {
    return follow(mine, purpose,
                  is_large(bytes) ? mine.take_from_pocket(bytes, unit, purpose, memory)
                                  : mine.take(bytes, unit, purpose, memory));
  }
  // Does what is to be done after an outcome; whether there was a block.
  bool follow(thread_cache& mine, std::uint64_t purpose, thread_cache::outcome came) noexcept {
    if (came == thread_cache::outcome::higher) mine.counted.publish(levels_, purpose, several());
    return came != thread_cache::outcome::none;
  }
  static bool is_large(std::uint64_t bytes) noexcept {
    return bytes > thread_cache::largest_listed;
  }
  // The same out of the heap, where nothing is at hand. False: nothing is free there that is as
  // large, or more is to be done.
  bool take_from_heap(thread_cache& mine, std::uint64_t bytes, std::uint8_t purpose,
                      void** memory) noexcept;
  // Gives back what no queued work uses. False: free() is to do it.
  bool give_at_hand(thread_cache& mine, void* memory, std::uint64_t bytes) noexcept;

  void* allocate(const wanted& what);  // throws VELO_ERR_MEMORY, FOREIGN

  // stream: whose queued work may use the block, or nullptr. Throws HANDLE; ARGUMENT for what is no
  // block in use (checked mode: of `bytes` bytes and undamaged); FULL and MEMORY of a stream;
  // nothing is freed then. True when the pool was closed and this was its last block: it is to be
  // destroyed.
  bool free(void* memory, std::uint64_t bytes, velo_stream stream);

  // No more allocations. True when no block is in use, else the pool stays for their frees.
  bool close() noexcept;
  bool is_closed() const noexcept { return (apart_.load(std::memory_order_relaxed) & closed) != 0; }

  std::uint64_t trim(std::uint64_t keep) noexcept;  // until so many free bytes are left; let go
  void set_limit(std::uint64_t bytes) noexcept;
  // Throws STATE in the log function, which is called with the lock.
  void require_not_logging() const {
    if (__builtin_expect(logging_.load(std::memory_order_relaxed) == pthread_self(), 0))
      refuse_in_log();
  }
  void check() const;  // throws ARGUMENT naming the first damaged block
  void fill(velo_pool_stats& stats) noexcept;
  void fill(velo_stream of, velo_pool_stream_stats& stats) noexcept;

  // Keeps the last so many events from now on; 0: no more are added. Throws bad_alloc.
  void record(std::uint64_t events);
  // Says something of a block, or with nullptr of all that follows. Throws ARGUMENT for what is no
  // block in use, STATE when nothing is recorded, bad_alloc.
  void say(const void* memory, const char* text);
  snapshot look();  // throws bad_alloc

  // Memory that a plan has behind its addresses counts as the pool's, and within the limit.
  bool lend(std::uint64_t bytes) noexcept;  // false: the limit
  void take_back(std::uint64_t bytes) noexcept;
  // Lets memory of free blocks go, as far as it does, so that with `coming` bytes the pool holds no
  // more than `most`, nor its limit; by how much it will be more.
  std::uint64_t make_room(std::uint64_t coming, std::uint64_t most) noexcept;
  // Whether a block of so many bytes could be had, but is not free in one piece.
  bool needs_room(std::uint64_t bytes) const noexcept;
  std::uint64_t bytes_in_use() const noexcept;  // of blocks in use or pending
  velo_pool_kind kind() const noexcept { return kind_; }

  const plain_functions& functions();  // the same ones each time; throws UNSUPPORTED, MEMORY

  // Of shared memory, the file and where in it a block lies. Throws ARGUMENT, UNSUPPORTED.
  void locate(const void* memory, std::int32_t& file, std::uint64_t& offset) const;
  // Of each lifetime, where all its blocks lie as long as the pool is there.
  const address_range& range(int lifetime) const noexcept { return heaps_[lifetime].range(); }

 private:
  static constexpr int lifetimes = 2;
  enum : std::uint32_t { closed = 1, recorded = 2 };  // bits of apart_

  thread_cache* cache_here() noexcept {
    thread_cache* mine = table_.find(handle_);
    return __builtin_expect(mine != nullptr, 1) ? mine : find_cache();
  }
  thread_cache* find_cache() noexcept;
  void* allocate_slowly(thread_cache* mine, const wanted& what);
  static void thread_ends(void* cache) noexcept;

  // slow path, with the lock
  block* obtain_or_wait(const wanted& what, std::uint64_t size, std::unique_lock<brief_lock>& lock);
  block* obtain(const wanted& what, std::uint64_t size) noexcept;
  block* obtain_new(heap& from, std::uint64_t size, std::uint64_t alignment) noexcept;
  bool take_in() noexcept;
  void take_in_passed() noexcept;
  std::uint64_t bytes_to_recycle(const heap::growth& planned, std::uint64_t size) const noexcept;
  bool supplied(block& grown, heap& of, const heap::growth& planned, std::uint64_t bytes) noexcept;
  std::uint64_t trim_free(std::uint64_t bytes, block* but) noexcept;
  bool wait_for_stream(std::unique_lock<brief_lock>& lock);
  bool host_helps(std::uint64_t bytes, int& in_vain, std::unique_lock<brief_lock>& lock);
  void follow_drain(thread_cache& mine) noexcept {
    if (__builtin_expect(mine.drains_seen != drains_.load(std::memory_order_relaxed), 0))
      drain(mine);
  }
  void drain(thread_cache& mine) noexcept;
  bool take_over(thread_cache& mine, std::uint64_t bytes) noexcept;
  block* take_from_chain(thread_cache& mine, const wanted& what) noexcept;
  void empty_full_lists(thread_cache& mine) noexcept;
  std::int64_t most_in_lists() const noexcept;
  void give(block& b) noexcept { heaps_[b.lifetime].give(b); }
  void give_chain(block& first) noexcept;  // of a pocket
  void empty_own_pockets(thread_cache& mine) noexcept;

  // frees, free.cpp
  heap& heap_of(const void* memory) noexcept { return heaps_[heaps_[0].outside(memory) ? 1 : 0]; }
  const heap& heap_of(const void* memory) const noexcept {
    return heaps_[heaps_[0].outside(memory) ? 1 : 0];
  }
  bool free_slowly(thread_cache* mine, void* memory, std::uint64_t bytes, core::stream* on,
                   velo_stream handle);
  [[noreturn]] __attribute__((cold)) static void refuse_in_log();
  [[noreturn]] void refuse(const void* memory, const block* found) const;  // with the lock
  void check_block(const block& b, std::uint64_t bytes) const;
  void retire(block& b) noexcept;
  void report(velo_log_level level, const char* line) const noexcept;
  void release_quarantined(block& oldest) noexcept;

  std::uint64_t reserved() const noexcept {
    return heaps_[0].reserved() + heaps_[1].reserved() + lent_;
  }
  std::uint64_t free_bytes() const noexcept {
    return heaps_[0].free_bytes() + heaps_[1].free_bytes();
  }
  std::uint64_t largest_hole() const noexcept;  // in either heap: pages move between them
  template <class F>
  std::int64_t sum(F&& of) const noexcept {  // of(tally), over all threads
    std::int64_t all = of(shared_);
    for (const thread_cache* c = caches_; c != nullptr; c = c->next) all += of(c->counted);
    return all;
  }
  bool several() const noexcept { return several_.load(std::memory_order_relaxed); }
  void set_apart(std::uint32_t bits) noexcept {  // with the lock
    apart_.store(bits, std::memory_order_relaxed);
    quick_.store(bits == 0 ? table_.places() : nullptr, std::memory_order_relaxed);
  }
  struct usage {
    std::uint64_t blocks = 0, requested = 0;
  };
  usage in_use() const noexcept;  // a walk, with the lock

  std::atomic<cache_place*> quick_{nullptr};  // the table's; nullptr as long as apart_ is not 0
  std::atomic<std::uint32_t> apart_{0};
  const void* handle_ = nullptr;
  heap heaps_[lifetimes];
  cache_table table_;
  level levels_[levels];
  const velo_pool_kind kind_;
  const bool checked_;
  const std::uint32_t epoch_;  // of the process: a child that was forked has no use for the pool
  const velo_pool_pressure_fn pressure_;
  void* const pressure_user_;
  core::logger log_;
  mutable std::atomic<pthread_t> logging_{0};  // the thread, which has the lock; no thread is 0
  pthread_key_t key_{};
  bool has_key_ = false;
  std::atomic<std::uint32_t> drains_{0};
  std::atomic<bool> several_{false};  // threads have caches

  mutable brief_lock lock_;  // guards what follows and the heaps
  stream_frees streams_[lifetimes];
  checked::quarantine quarantine_;
  thread_cache* caches_ = nullptr;
  exchange exchange_;
  std::unique_ptr<plain_functions> functions_;
  tally shared_;            // of threads that have ended or have no cache
  std::uint64_t left_ = 0;  // blocks in use, once it is closed
  std::uint64_t limit_;
  std::uint64_t lent_ = 0;  // to plans
  std::uint64_t peak_reserved_ = 0, recycled_ = 0, let_go_ = 0;
  std::uint64_t taken_bytes_ = 0;  // of blocks that the heaps handed out
  std::uint64_t recycling_ticks_ = 0;
  const std::uint64_t made_at_ = core::ticks_now();
  std::uint64_t refused_ = 0, damaged_ = 0;

  // pool_history.cpp: for the history, called where apart_ has the bit `recorded`, with the lock or
  // without. on: nullptr where the block is free at once.
  void note_taken(const char* memory, std::uint64_t size, const wanted& what) noexcept;
  void note_given(const block& b, std::uint64_t requested, std::uint8_t purpose, velo_stream on,
                  std::uint64_t ticks) noexcept;
  void note_passed(const block& b) noexcept;
  void note_reserved(const heap& of, std::uint64_t start, std::uint64_t bytes,
                     bool mapped) noexcept;
  void note_refused(std::uint64_t bytes, std::uint8_t lifetime) noexcept;
  void note(const event& e) noexcept;
  bool is_recorded() const noexcept {
    return __builtin_expect(apart_.load(std::memory_order_relaxed) & recorded, 0) != 0;
  }
  bool give_and_note(thread_cache& mine, void* memory, std::uint64_t bytes) noexcept;
  void fill_with_lock(velo_pool_stats& stats) const noexcept;

  history history_;
};

__attribute__((always_inline)) inline bool pool::give_at_hand(thread_cache& mine, void* memory,
                                                              std::uint64_t bytes) noexcept {
  block* b = nullptr;
  return heaps_[VELO_LIFETIME_DEFAULT].find_quickly(memory, bytes, b) &&
         __builtin_expect(b->is(block_state::in_use), 1) &&
         (is_large(bytes) ? mine.put_into_pocket(*b, bytes, several())
                          : mine.put(*b, memory, bytes));
}

}  // namespace velo::memory

template <>
struct velo::core::handle_traits<velo::memory::pool> {
  using handle = velo_pool;
  static constexpr handle_kind& kind = kinds::pool;
};
