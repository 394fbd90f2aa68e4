// Prefetches a line of memory that this processor is about to write. It removes the line from other
// caches, which a load would not.
//
// It is a hint without architectural effect, and no later instruction waits for it. Cost: that of
// an unused load.
#pragma once

namespace velo::core {

inline void prefetch_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace velo::core
