// A hash table of a pool's thread caches: a thread finds its own with three loads and no call.
//
// One comparison checks everything that a fast call depends on. The key of a page is thread +
// handle, generation included, so that a stale handle, another thread's page and an empty page (0)
// all differ; in a child of a fork all pages are zero (MADV_WIPEONFORK), so nothing is found there.
//
// A page is chosen by the address of the thread's control block, so that neighboring stacks have
// different ones; a second page by a hash of it. Where both are taken, or there are no pages, the
// cache is on the heap and found by pthread_getspecific. A page gets its memory with its first
// thread and keeps it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/pool/cache/thread_cache.hpp"
#include "memory/pool/heap/address_range.hpp"

namespace velo::memory {

struct cache_page {
  alignas(64) std::byte cache[4096 - 64];
  std::atomic<std::uint64_t> key;  // 0, as in a fresh page: free
};
static_assert(sizeof(cache_page) == 4096 && sizeof(thread_cache) <= sizeof(cache_page::cache));

class cache_table {
 public:
  // It has no pages where the system has no memory or cannot wipe them (Linux before 4.14).
  cache_table() noexcept;
  cache_table(const cache_table&) = delete;
  cache_table& operator=(const cache_table&) = delete;

  cache_page* pages() const noexcept { return pages_; }  // nullptr: none

  // The cache of the calling thread, if it is in its first page. handle: of the pool; nullptr where
  // the pool has none.
  __attribute__((always_inline)) static thread_cache* find_first(cache_page* pages,
                                                                 const void* handle) noexcept {
    if (__builtin_expect(pages == nullptr, 0)) return nullptr;
    return find(pages, first_of(this_thread()), handle);
  }
  // In either page.
  thread_cache* find(const void* handle) const noexcept {
    thread_cache* found = find_first(pages_, handle);
    if (__builtin_expect(found != nullptr, 1) || pages_ == nullptr) return found;
    return find(pages_, second_of(this_thread()), handle);
  }

  // A new cache for the calling thread; nullptr: both of its pages are taken.
  thread_cache* add(pool& owner, char* base, std::uint32_t drains, const void* handle) noexcept;
  // Frees the page of a cache that is no longer used; false: the cache is not in the table.
  bool remove(thread_cache& ended) noexcept;

 private:
  static constexpr std::uint64_t count = 256;

  // Addresses of two threads differ by less than handles of two generations, so that all keys of a
  // pool differ, and none is 0.
  static std::uint64_t key_of(std::uint64_t thread, const void* handle) noexcept {
    return thread + reinterpret_cast<std::uintptr_t>(handle);
  }
  static std::uint64_t this_thread() noexcept {
#if defined(__x86_64__)
    std::uint64_t self = 0;  // pthread_self without the call: stored at its own address
    asm("mov %%fs:0, %0" : "=r"(self));
    return self;
#else
    return static_cast<std::uint64_t>(pthread_self());
#endif
  }
  // Page numbers.
  static std::uint64_t first_of(std::uint64_t thread) noexcept {
    return thread / sizeof(cache_page) % count;
  }
  static std::uint64_t second_of(std::uint64_t thread) noexcept {
    return thread * 0x9e3779b97f4a7c15u >> 56;
  }
  __attribute__((always_inline)) static thread_cache* find(cache_page* pages, std::uint64_t number,
                                                           const void* handle) noexcept {
    cache_page& here = pages[number];
    const std::uint64_t key = here.key.load(std::memory_order_relaxed);
    return __builtin_expect(key == key_of(this_thread(), handle), 1)
               ? reinterpret_cast<thread_cache*>(here.cache)
               : nullptr;
  }

  sparse_array memory_;
  cache_page* pages_ = nullptr;
};

}  // namespace velo::memory
