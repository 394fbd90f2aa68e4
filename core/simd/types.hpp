// Element types as kernels see them. Files compiled for one instruction set include this header, so
// it uses nothing of the standard library.
#pragma once

#include <stdint.h>

namespace velo::simd {

// A bfloat16 is the upper half of a float.
struct bf16 {
  uint16_t bits;
};

// A float16 of IEEE 754: sign, 5 bits of exponent, 10 of fraction.
struct f16 {
  uint16_t bits;
};

// The lanes of a vector of `width` in use for elements [i, n): all, or the tail.
template <int width>
__attribute__((always_inline)) static inline int lanes_left(int64_t n, int64_t i) {
  return n - i < width ? static_cast<int>(n - i) : width;
}

}  // namespace velo::simd
