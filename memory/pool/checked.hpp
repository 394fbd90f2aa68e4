// The checked mode: guards around each block, and a pattern in freed blocks, by which stray writes
// are found and named.
//
//   | front guard | the caller's bytes | rear guard to the block's end |
//
// The front guard is 64 bytes, or the alignment; the rear one at least 64. A fresh block is filled
// with 0xa5, unless zero is asked for. A freed block is filled with 0xdd and kept in a quarantine
// of 32 MiB, which the oldest leaves first; a write to it is found when it leaves, or by a check.
// Cost: filling every byte at allocation and at free, under the pool's lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/failure.hpp"
#include "core/round_up.hpp"
#include "memory/pool/heap/block.hpp"

namespace velo::memory::checked {

inline constexpr std::uint64_t guard = 64;

inline std::uint64_t front_of(std::uint64_t alignment) {
  return std::max(alignment, guard);
}
inline std::uint64_t size_of(std::uint64_t front, std::uint64_t bytes) {
  return core::round_up(front + bytes + guard, unit);
}

// memory: of the block, its front guard first.
void arm(char* memory, const block& b, bool zero) noexcept;  // b in use, `front` set
bool is_damaged(const char* memory, const block& b, core::text& how) noexcept;
void poison(char* memory, const block& b) noexcept;
bool is_poison_damaged(const char* memory, const block& b, core::text& how) noexcept;

// Freed blocks in the order of their frees.
class quarantine {
 public:
  static constexpr std::uint64_t most = std::uint64_t{32} << 20;

  void add(block& freed) noexcept;
  block* oldest() const noexcept { return first_; }
  block* take() noexcept;  // the oldest; nullptr: none
  bool is_over() const noexcept { return bytes_ > most; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  block* first_ = nullptr;
  block* last_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace velo::memory::checked
