// Memory that begins at a cache line, for packs and scratch of engines that are tested without a
// context. It holds NaN, so that no test relies on zeros, and has guards on both sides.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace velo::testing {

class aligned_memory {
 public:
  explicit aligned_memory(std::size_t size) : bytes_(size + 256, guard), size_(size) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    start = bytes_.data() + ((64 - address % 64) % 64 + 64);
    std::memset(start, 0xff, size);
  }
  aligned_memory(aligned_memory&&) noexcept = default;

  bool intact() const {
    for (int i = 1; i <= 64; ++i) {
      if (start[-i] != guard || start[size_ + static_cast<std::size_t>(i) - 1] != guard)
        return false;
    }
    return true;
  }

  unsigned char* start;

 private:
  static constexpr unsigned char guard = 0xa5;
  std::vector<unsigned char> bytes_;
  std::size_t size_;
};

}  // namespace velo::testing
