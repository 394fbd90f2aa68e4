// Scratch memory for one operator at a time: a bump allocator that is emptied when the operator
// ends, and within it at the end of a scratch_scope, so that a loop of products needs the memory of
// its largest one.
//
// It grows by chunks while an operator needs more memory, each at least as large as all before. The
// reset after a growth frees the chunks, and the next operator allocates one chunk for the most
// bytes that were live at once. So a repeated sequence of operators allocates in its first two
// rounds and never again. Every block is 64-byte aligned; contents are undefined. Not thread-safe:
// blocks are allocated before the parallel region and divided inside it.
#pragma once

#include <algorithm>
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
    if (used_ != 0 || retired_ != nullptr) forget();
  }

 private:
  friend class scratch_scope;
  struct chunk;  // header of a retired chunk, at the end of the chunk

  void* grow(std::size_t bytes);
  void note_peak() noexcept { wanted_ = std::max(wanted_, earlier_ + used_); }
  void forget() noexcept;
  void release() noexcept;

  memory_source& source_;
  char* memory_ = nullptr;  // current chunk, capacity_ usable bytes
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t wanted_ = 0;         // the most bytes live at once in any operator so far
  std::size_t earlier_ = 0;        // live bytes in retired chunks of the running operator
  std::size_t retired_bytes_ = 0;  // usable bytes of those chunks
  chunk* retired_ = nullptr;
};

// Empties an arena at the end of a scope.
struct scratch_reset {
  ~scratch_reset() { scratch.reset(); }
  arena& scratch;
};

// Gives back at its end what was taken from an arena since its begin. Scopes nest.
class scratch_scope {
 public:
  explicit scratch_scope(arena& scratch)
      : scratch_(scratch),
        memory_(scratch.memory_),
        used_(scratch.used_),
        earlier_(scratch.earlier_) {}
  ~scratch_scope() {
    scratch_.note_peak();
    // A newer chunk holds only what the scope has taken.
    const bool has_grown = scratch_.memory_ != memory_;
    scratch_.used_ = has_grown ? 0 : used_;
    scratch_.earlier_ = has_grown ? earlier_ + used_ : earlier_;
  }
  scratch_scope(const scratch_scope&) = delete;
  scratch_scope& operator=(const scratch_scope&) = delete;

 private:
  arena& scratch_;
  const char* const memory_;
  const std::size_t used_, earlier_;
};

}  // namespace velo::core
