// bfloat16 and float for plain code, and the contract of the vector headers
// avx2.hpp and avx512.hpp.
//
// Each vector header offers, in a namespace of its own: `width`; `vec`; set, zero, + - * /, fma(a,
// b, c) = a * b + c, max, min, sqrt, power2, rough_reciprocal, swap_pairs, if_nan; load(p), load(p,
// n) (missing lanes are zero), store(p, v), store(p, v, n), stream(p, v) (aligned to the vector's
// bytes), put<Bypass>(p, v), put2<Bypass>(p, v, w), load_any_order(p), put_same_order<Bypass>(p,
// v), each for float and bf16; fence, prefetch, look_ahead; sum and largest across lanes. math.inl
// adds exp over any of them. Loading a bf16 is exact; storing one rounds to nearest even.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/simd/types.hpp"

namespace velo::simd {

inline float to_float(float x) {
  return x;
}
inline float to_float(bf16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline bf16 to_bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {static_cast<std::uint16_t>((bits | 0x400000u) >> 16)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// Rounds a double to the element type, by way of float.
inline void assign(float& to, double from) {
  to = static_cast<float>(from);
}
inline void assign(bf16& to, double from) {
  to = to_bf16(static_cast<float>(from));
}

}  // namespace velo::simd
