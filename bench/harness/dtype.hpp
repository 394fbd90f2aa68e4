// Element types the bench makes tensors of. Operators are benched in f32 and bf16; the others carry
// indices and sums.
#pragma once

#include <cstdint>
#include <cstring>

namespace velo::bench {

enum class dtype { f32, bf16, i64, f64 };

constexpr std::int64_t bytes_of(dtype type) {
  return type == dtype::bf16 ? 2 : type == dtype::f32 ? 4 : 8;
}
constexpr const char* name_of(dtype type) {
  return type == dtype::f32    ? "f32"
         : type == dtype::bf16 ? "bf16"
         : type == dtype::i64  ? "i64"
                               : "f64";
}

inline float widen(std::uint16_t half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline std::uint16_t narrow(float value) {  // to nearest even; the bench makes no NaN
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

}  // namespace velo::bench
