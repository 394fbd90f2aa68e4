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

}  // namespace velo::simd
