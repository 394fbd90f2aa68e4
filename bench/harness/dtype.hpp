// Element types the bench makes tensors of. Operators are benched in f32, bf16 and f16; the others
// carry indices and sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace velo::bench {

enum class dtype { f32, bf16, f16, i64, f64 };

constexpr std::int64_t bytes_of(dtype type) {
  return type == dtype::bf16 || type == dtype::f16 ? 2 : type == dtype::f32 ? 4 : 8;
}
constexpr const char* name_of(dtype type) {
  return type == dtype::f32    ? "f32"
         : type == dtype::bf16 ? "bf16"
         : type == dtype::f16  ? "f16"
         : type == dtype::i64  ? "i64"
                               : "f64";
}

inline float widen(std::uint16_t half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline double widen_f16(std::uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return half >> 15 != 0 ? -size : size;
}

inline std::uint16_t narrow(float value) {  // to nearest even; the bench makes no NaN
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

inline std::uint16_t narrow_f16(double value) {  // to nearest even, below 2^16
  if (value == 0) return 0;
  int exponent = 0;  // of an ulp of the result, as a power of two
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 11, -24);
  const double ulps = std::nearbyint(std::ldexp(std::abs(value), -exponent));
  const int bits = (exponent + 24) * 1024 + static_cast<int>(ulps);
  return static_cast<std::uint16_t>(bits | (value < 0 ? 0x8000 : 0));
}

}  // namespace velo::bench
