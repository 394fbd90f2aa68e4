// Integers of quantized tensors in tests.
#pragma once

#include <cstdint>

namespace velo::testing {

// Two's complement, two to a byte, the first in the low half.
inline int int4_at(const std::uint8_t* data, std::int64_t i) {
  const int four = data[i / 2] >> (i % 2 * 4) & 0xf;
  return four < 8 ? four : four - 16;
}

}  // namespace velo::testing
