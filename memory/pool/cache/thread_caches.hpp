// The caches of all threads that use a pool, and what these threads have in use together.
//
// A thread finds its own cache in the table (cache_table.hpp) or, where it has no page there, by
// pthread_getspecific, whose key also reports the end of the thread. The pool walks over all caches
// under its lock. A thread counts in its own cache; ended threads and those without a cache share a
// tally. Cost: finding a cache takes three loads; sums take a load for each thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "memory/pool/cache/cache_table.hpp"
#include "memory/pool/cache/tally.hpp"
#include "memory/pool/cache/thread_cache.hpp"

namespace velo::memory {

class thread_caches {
 public:
  // on_thread_end is called with the thread's cache. Without `enabled`, or where the process has no
  // key left, no thread gets a cache and every call goes to the heap.
  thread_caches(bool enabled, void (*on_thread_end)(void*)) noexcept;
  ~thread_caches();
  thread_caches(const thread_caches&) = delete;
  thread_caches& operator=(const thread_caches&) = delete;

  // Ends the reports of ending threads.
  void close() noexcept;

  void set_handle(const void* handle) noexcept { handle_ = handle; }
  cache_page* pages() const noexcept { return table_.pages(); }

  // The calling thread's cache; nullptr: it has none yet.
  thread_cache* find() const noexcept {
    thread_cache* own = table_.find(handle_);
    return __builtin_expect(own != nullptr, 1) ? own : find_by_key();
  }
  // Makes the calling thread's cache; the caller then calls add(). nullptr: none can be made.
  thread_cache* make(pool& owner, char* base) noexcept;

  // The following need the pool's lock; threads count without it.
  void add(thread_cache& made) noexcept;
  void remove(thread_cache& ended) noexcept;  // whose blocks are gone; keeps its counts
  template <class F>
  void each(F&& f) const {  // f(thread_cache&)
    for (thread_cache* c = first_; c != nullptr; c = c->next) f(*c);
  }
  bool several() const noexcept { return several_.load(std::memory_order_relaxed); }

  // Asks every thread to return the blocks in its lists to the heap at its next slow call.
  void request_drains() noexcept { drains_.fetch_add(1, std::memory_order_relaxed); }
  // Whether a request came since this thread last drained its lists, which it is to do now.
  bool must_drain(thread_cache& own) const noexcept {
    const std::uint32_t requested = drains_.load(std::memory_order_relaxed);
    if (__builtin_expect(own.drains_seen == requested, 1)) return false;
    own.drains_seen = requested;
    return true;
  }

  // The tally of a thread, which may have no cache.
  tally& tally_of(thread_cache* own) noexcept { return own != nullptr ? own->counted : shared_; }
  void publish(tally& counted, std::uint64_t purpose) noexcept {
    counted.publish(levels_, purpose, several());
  }
  void settle(tally& counted, std::uint8_t purpose) noexcept { counted.settle(purpose, levels_); }
  std::int64_t peak(int level) const noexcept {  // a purpose, or `purposes`: of all
    return levels_[level].peak.load(std::memory_order_relaxed);
  }
  template <class F>
  std::int64_t sum(F&& f) const noexcept {  // of f(tally) over all threads
    std::int64_t all = f(shared_);
    for (const thread_cache* c = first_; c != nullptr; c = c->next) all += f(c->counted);
    return all;
  }
  std::int64_t bytes_in_use() const noexcept {
    return sum([](const tally& t) { return t.bytes(purposes); });
  }

 private:
  thread_cache* find_by_key() const noexcept;
  void free_cache(thread_cache& gone) noexcept;

  cache_table table_;
  const void* handle_ = nullptr;
  pthread_key_t key_{};
  bool has_key_ = false;
  std::atomic<std::uint32_t> drains_{0};
  std::atomic<bool> several_{false};  // threads have caches
  thread_cache* first_ = nullptr;
  alignas(64) level levels_[levels];  // apart from the above, since every thread writes them
  tally shared_;
};

}  // namespace velo::memory
