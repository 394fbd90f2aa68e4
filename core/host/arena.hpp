// Scratch memory for one operator at a time: a bump allocator that is emptied when the operator
// ends.
//
// It grows by chunks while an operator needs more memory. The reset after a growth frees the
// chunks, and the next operator allocates one chunk of the whole size. So a repeated sequence of
// operators allocates in its first two rounds and never again. Every block is 64-byte aligned;
// contents are undefined. Not thread-safe: blocks are allocated before the parallel region and
// divided inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/failure.hpp"
#include "core/host/memory.hpp"

namespace velo::core {

class arena {
 public:
  explicit arena(memory_source& source) : source_(source) {}
  ~arena() {
    if (memory_ != nullptr || retired_ != nullptr) release();
  }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  // `bytes` bytes from the current chunk, or from a new one. Zero bytes give a valid pointer
  // without memory. Throws VELO_ERR_MEMORY.
  void* take(std::size_t bytes) {
    const std::size_t rounded = (bytes + 63) & ~std::size_t{63};
    if (rounded < bytes || rounded > capacity_ - used_) return grow(bytes);
    void* block = memory_ + used_;
    used_ += rounded;
    return block;
  }

  template <class T>
  T* take(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      fail(VELO_ERR_MEMORY, "", "scratch of a size that fits in 64 bits", "an overflow");
    return static_cast<T*>(take(count * sizeof(T)));
  }

  void reset() noexcept {
    if (used_ != 0) forget();
  }

 private:
  struct chunk;  // header of a retired chunk, at the end of the chunk

  void* grow(std::size_t bytes);
  void forget() noexcept;
  void release() noexcept;

  memory_source& source_;
  char* memory_ = nullptr;  // current chunk, capacity_ usable bytes
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t wanted_ = 0;   // bytes that the largest operator so far needed
  std::size_t earlier_ = 0;  // usable bytes in retired chunks of the running operator
  chunk* retired_ = nullptr;
};

// Empties an arena at the end of a scope.
struct scratch_reset {
  ~scratch_reset() { scratch.reset(); }
  arena& scratch;
};

}  // namespace velo::core
