// A line of memory that this processor is about to write, asked for while it does something else:
// alone in its cache, where a load would leave it in others', too.
//
// A hint of no architectural effect, which no later instruction waits for. Cost: that of a load
// that nobody uses.
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
