// Element types as kernels see them. No standard library: this header is read by files compiled for
// one instruction set.
#pragma once

#include <stdint.h>

namespace velo::simd {

// A bfloat16 is the upper half of a float.
struct bf16 {
  uint16_t bits;
};

// A float16: sign, 5 bits of exponent, 10 of fraction, as IEEE 754 has it.
struct f16 {
  uint16_t bits;
};

// Elements of a vector of `width` when `left` are left: all, or the tail.
template <int width>
__attribute__((always_inline)) static inline int lanes_left(int64_t left) {
  return left < width ? static_cast<int>(left) : width;
}

}  // namespace velo::simd
