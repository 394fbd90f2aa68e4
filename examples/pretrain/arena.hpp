// One allocation, planned before it is made.
//
// A plan is a function that takes its buffers from an arena. It runs twice: against an empty
// arena to learn the size, then against memory of that size. Nothing is given back; nothing
// is allocated later.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pretrain {

class arena {
 public:
  arena() = default;                                      // measures: every buffer is null
  explicit arena(std::byte* memory) : memory_(memory) {}  // hands out

  // `bytes` at the next multiple of 64, a cache line.
  std::byte* take(std::int64_t bytes) {
    const std::int64_t at = (used_ + 63) / 64 * 64;
    used_ = at + bytes;
    return memory_ ? memory_ + at : nullptr;
  }

  std::int64_t used() const { return used_; }

 private:
  std::byte* memory_ = nullptr;
  std::int64_t used_ = 0;
};

}  // namespace pretrain
