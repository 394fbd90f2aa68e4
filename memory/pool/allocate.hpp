// An allocation from the call to its memory, the hit first, then what happens on a miss:
//
//   1. allocate_plain: a small block of the thread's cache, without a lock and without a call
//   2. allocate_large: a large block of the thread's cache
//   3. pool::take_from_heap (allocate.cpp): a free block of the heap, under the lock
//   4. pool::allocate (allocate.cpp): requests of every kind, blocks that other threads freed
//   5. pool_supply::obtain (pool_supply.cpp): pending, reclaimed and new memory, waiting, refusal
//
// A plain request has nothing but bytes and a purpose. Each step is a function of its own that the
// one before ends in, so that the hit saves no registers: it is about 55 instructions.
#pragma once

#include <cstdint>

#include "memory/pool/pool.hpp"

namespace velo::memory {

// The condition that nearly all calls meet: the code for it follows without a jump.
__attribute__((always_inline)) inline bool likely(bool condition) {
  return __builtin_expect(condition, 1);
}

// The calling thread's cache in the pool that a handle names; nullptr: there is none, or the handle
// is to be refused. It is core::live_slot in fewer steps, since caches are found by the handle.
__attribute__((always_inline)) inline thread_cache* cache_of(velo_pool handle) {
  if (likely(handle != nullptr) && likely(core::slot_named(handle)->kind == &core::kinds::pool))
    return core::object_of<pool>(handle).cache_for(handle);
  return nullptr;
}

// 3. `general`: velo_status(velo_pool, const velo_pool_request*, void**), for step 4.
template <auto general>
__attribute__((noinline)) velo_status allocate_from_heap(velo_pool handle,
                                                         const velo_pool_request* request,
                                                         void** memory, thread_cache& own) {
  if (core::object_of<pool>(handle).take_from_heap(
          own, request->bytes, static_cast<std::uint8_t>(request->purpose), memory))
    return VELO_OK;
  return general(handle, request, memory);
}

// 2.
template <auto general>
__attribute__((noinline)) velo_status allocate_large(velo_pool handle,
                                                     const velo_pool_request* request,
                                                     void** memory, thread_cache& own) {
  const auto purpose = static_cast<std::uint8_t>(request->purpose);
  if (core::object_of<pool>(handle).take_cached(own, request->bytes, purpose, memory))
    return VELO_OK;
  return allocate_from_heap<general>(handle, request, memory, own);
}

// Publishes a thread's use after a block by which it exceeds the published one.
__attribute__((noinline)) inline velo_status publish_use(velo_pool handle, thread_cache& own,
                                                         std::uint64_t purpose) {
  core::object_of<pool>(handle).settle_outcome(own, purpose, thread_cache::outcome::higher);
  return VELO_OK;
}

// 1. request: of this release and plain. purpose: the request's, at most VELO_PURPOSE_INPUT.
template <auto general>
__attribute__((always_inline)) inline velo_status allocate_plain(velo_pool handle,
                                                                 const velo_pool_request* request,
                                                                 std::uint64_t purpose,
                                                                 void** memory) {
  thread_cache* own = cache_of(handle);
  if (!likely(own != nullptr)) return general(handle, request, memory);
  if (!likely(thread_cache::is_small(request->bytes)))
    return allocate_large<general>(handle, request, memory, *own);
  const thread_cache::outcome outcome = own->take(request->bytes, unit, purpose, memory);
  if (likely(outcome == thread_cache::outcome::taken)) return VELO_OK;
  if (outcome == thread_cache::outcome::higher) return publish_use(handle, *own, purpose);
  return allocate_from_heap<general>(handle, request, memory, *own);
}

// A block of the thread's cache. False: there is none.
inline bool pool::take_cached(thread_cache& own, std::uint64_t bytes, std::uint8_t purpose,
                              void** memory) noexcept {
  return settle_outcome(own, purpose,
                        thread_cache::is_large(bytes) ? own.take_large(bytes, unit, purpose, memory)
                                                      : own.take(bytes, unit, purpose, memory));
}

}  // namespace velo::memory
