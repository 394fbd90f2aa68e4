// A free from the call to the end of the block, the hit first:
//
//   1. free_plain: a small block goes to the thread's cache, without a lock and without a call
//   2. free_large: a large block goes to the thread's cache
//   3. pool::free (free.cpp): every block, freed on a stream or not; refuses memory that is no
//      block
//
// A plain free names no stream. The functions end in one another as those of allocate.hpp do.
#pragma once

#include <cstdint>

#include "memory/pool/allocate.hpp"

namespace velo::memory {

// False: the block is not in use, not of so many bytes, or the cache has no room for it.
__attribute__((always_inline)) inline bool pool::put_cached(thread_cache& own, void* memory,
                                                            std::uint64_t bytes) noexcept {
  block* b = nullptr;
  return blocks_.heap_for(VELO_LIFETIME_DEFAULT).find_quickly(memory, bytes, b) &&
         likely(b->is(block_state::in_use)) &&
         (thread_cache::is_large(bytes) ? own.put_large(*b, bytes, threads_.several())
                                        : own.put(*b, memory, bytes));
}

// 2. `general`: velo_status(velo_pool, void*, std::uint64_t, velo_stream), for step 3.
template <auto general>
__attribute__((noinline)) velo_status free_large(velo_pool handle, void* memory,
                                                 std::uint64_t bytes, thread_cache& own) {
  if (core::object_of<pool>(handle).put_cached(own, memory, bytes)) return VELO_OK;
  return general(handle, memory, bytes, nullptr);
}

// 1.
template <auto general>
__attribute__((always_inline)) inline velo_status free_plain(velo_pool handle, void* memory,
                                                             std::uint64_t bytes) {
  thread_cache* own = cache_of(handle);
  if (likely(own != nullptr)) {
    if (!likely(thread_cache::is_small(bytes)))
      return free_large<general>(handle, memory, bytes, *own);
    if (core::object_of<pool>(handle).put_cached(*own, memory, bytes)) return VELO_OK;
  }
  return general(handle, memory, bytes, nullptr);
}

}  // namespace velo::memory
