// A host's allocator over that of the C library: it counts, and fails where a test asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "velo/context.h"

namespace velo::testing {

struct host_memory {
  std::atomic<std::int64_t> bytes{0}, blocks{0};  // not freed yet
  std::atomic<int> remaining{-1};                 // requests until one is refused; -1: none is
  int fill = -1;                                  // each byte handed out; -1: as it is
  std::function<void()> on_allocate, on_free;     // called first; they may throw

  velo_allocator allocator() { return {sizeof(velo_allocator), 0, this, &allocate, &deallocate}; }

 private:
  static void* allocate(void* user, std::uint64_t bytes, std::uint64_t alignment,
                        const velo_device*, void*) {
    auto& self = *static_cast<host_memory*>(user);
    if (self.on_allocate) self.on_allocate();
    if (self.remaining == 0) return nullptr;
    if (self.remaining > 0) --self.remaining;
    self.bytes += static_cast<std::int64_t>(bytes);
    ++self.blocks;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (self.fill >= 0 && memory != nullptr) std::memset(memory, self.fill, bytes);
    return memory;
  }
  static void deallocate(void* user, void* memory, std::uint64_t bytes, const velo_device*, void*) {
    auto& self = *static_cast<host_memory*>(user);
    self.bytes -= static_cast<std::int64_t>(bytes);
    --self.blocks;
    std::free(memory);
    if (self.on_free) self.on_free();
  }
};

}  // namespace velo::testing
