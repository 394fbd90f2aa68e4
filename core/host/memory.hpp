// The source of a context's memory: the host's allocator struct, or the operating system.
//
// All memory is 64-byte aligned and counted. Blocks of 2 MiB and more are mapped with huge pages:
// their first touch costs an eighth of that of small pages, and unmapping a twenty-fifth. A
// memory_source is reference-counted because a managed tensor may outlive its context. It is stored
// in memory of its own allocator, so that a host's counting allocator counts every byte.
// Thread-safe. Cost: the allocator's, plus three atomic additions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "velo/context.h"

namespace velo::core {

class memory_source {
 public:
  // Starts with one reference. host: copied; nullptr: the operating system. Throws VELO_ERR_MEMORY.
  static memory_source* create(const velo_allocator* host);

  // owner: the handle of the context whose memory this is.
  void serve(const void* owner) noexcept { owner_ = owner; }

  void retain() noexcept;
  void release() noexcept;

  void* take(std::size_t bytes);                        // throws VELO_ERR_MEMORY
  void give(void* memory, std::size_t bytes) noexcept;  // bytes: as allocated; nullptr is ignored

  std::uint64_t live() const noexcept { return live_.load(std::memory_order_relaxed); }
  std::uint64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  std::uint64_t allocations() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  explicit memory_source(const velo_allocator& allocator) : allocator_(allocator) {}

  void count_taken(std::size_t bytes) noexcept;

  velo_allocator allocator_;
  const void* owner_ = nullptr;
  std::atomic<std::uint32_t> references_{1};
  std::atomic<std::uint64_t> live_{0}, peak_{0}, count_{0};
};

// Runs attempt(), a call of a library that returns nullptr without telling whether memory ran out.
// Throws bad_alloc if no memory is left; otherwise tries once more, since memory may have been
// freed meanwhile.
bool heap_answers() noexcept;
template <class F>
auto again_with_memory(F&& attempt) {
  auto made = attempt();
  if (made != nullptr) return made;
  if (!heap_answers()) throw std::bad_alloc();
  return attempt();
}

}  // namespace velo::core
