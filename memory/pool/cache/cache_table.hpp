// A pool's thread caches by thread: finding one's own takes three loads and no call.
//
// One comparison answers all that a fast call has to know. A place's key is thread + handle,
// generation included, so a stale handle, another thread's place and an empty one (0) all differ;
// in a child of a fork all places are zero (MADV_WIPEONFORK), so nothing is found there.
//
// A place is a page, chosen by the address of the thread's control block, so that neighboring
// stacks have different ones. A thread may stand at a second place; where both are taken, or there
// are no places, its cache is on the heap and found by pthread_getspecific. A place gets its page
// with its first thread and keeps it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/pool/heap/address_range.hpp"
#include "memory/pool/cache/thread_cache.hpp"

namespace velo::memory {

struct cache_place {
  alignas(64) std::byte cache[4096 - 64];
  std::atomic<std::uint64_t> key;  // a fresh page, all zero, is nobody's
};
static_assert(sizeof(cache_place) == 4096 && sizeof(thread_cache) <= sizeof(cache_place::cache));

class cache_table {
 public:
  // Without places where the system has none, or cannot wipe them (Linux before 4.14).
  cache_table() noexcept;
  cache_table(const cache_table&) = delete;
  cache_table& operator=(const cache_table&) = delete;

  cache_place* places() const noexcept { return places_; }  // nullptr: none

  // The cache of the calling thread, if it stands at its first place. handle: whom the caches
  // serve; nullptr: the pool itself.
  __attribute__((always_inline)) static thread_cache* find_first(cache_place* places,
                                                                 const void* handle) noexcept {
    if (__builtin_expect(places == nullptr, 0)) return nullptr;
    return find(places, first_of(this_thread()), handle);
  }
  // At either.
  thread_cache* find(const void* handle) const noexcept {
    thread_cache* found = find_first(places_, handle);
    if (__builtin_expect(found != nullptr, 1) || places_ == nullptr) return found;
    return find(places_, second_of(this_thread()), handle);
  }

  // A new cache of the calling thread's; nullptr: there is no place for it.
  thread_cache* add(pool& owner, char* base, std::uint32_t drains, const void* handle) noexcept;
  // Frees the place of a cache that nobody uses any more; false: it has none.
  bool remove(thread_cache& ended) noexcept;

 private:
  static constexpr std::uint64_t count = 256;

  // Two threads' addresses differ by less than handles of two generations do: keys of a pool
  // differ, and none is 0.
  static std::uint64_t key_of(std::uint64_t thread, const void* handle) noexcept {
    return thread + reinterpret_cast<std::uintptr_t>(handle);
  }
  static std::uint64_t this_thread() noexcept {
#if defined(__x86_64__)
    std::uint64_t self = 0;  // pthread_self without the call: the pointer stands at its own address
    asm("mov %%fs:0, %0" : "=r"(self));
    return self;
#else
    return static_cast<std::uint64_t>(pthread_self());
#endif
  }
  // Numbers of places.
  static std::uint64_t first_of(std::uint64_t thread) noexcept {
    return thread / sizeof(cache_place) % count;
  }
  static std::uint64_t second_of(std::uint64_t thread) noexcept {
    return thread * 0x9e3779b97f4a7c15u >> 56;
  }
  __attribute__((always_inline)) static thread_cache* find(cache_place* places,
                                                           std::uint64_t number,
                                                           const void* handle) noexcept {
    cache_place& here = places[number];
    const std::uint64_t key = here.key.load(std::memory_order_relaxed);
    return __builtin_expect(key == key_of(this_thread(), handle), 1)
               ? reinterpret_cast<thread_cache*>(here.cache)
               : nullptr;
  }

  sparse_array memory_;
  cache_place* places_ = nullptr;
};

}  // namespace velo::memory
