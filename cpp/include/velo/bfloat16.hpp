// Bfloat16 as a type: the upper half of a float32, two bytes, without arithmetic. Conversions round
// to nearest even; a NaN stays a NaN.
//
// Bits are copied by the compiler's builtin: <cstring> would cost every user 500 lines.
#pragma once

#include <cstdint>

#include "velo/detail/mode.hpp"

VELO_CPP_BEGIN

struct bfloat16 {
  uint16_t bits;

  bfloat16() noexcept = default;

  explicit bfloat16(float value) noexcept {
    uint32_t word = 0;
    __builtin_memcpy(&word, &value, sizeof word);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    // Adds half of the last kept bit, less one if that bit is even, so that ties go to even. A NaN
    // is made quiet instead.
    const uint32_t rounded = nan ? (word | 0x00400000u) : word + 0x7fffu + ((word >> 16) & 1u);
    bits = static_cast<uint16_t>(rounded >> 16);
  }

  operator float() const noexcept {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value = 0;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
  }
};

static_assert(sizeof(bfloat16) == 2);

VELO_CPP_END
