// 16-bit numbers and float for plain code, the contract of the vector headers, and the part of it
// that products need on processors without extensions of x86-64.
//
// Each vector header offers, in a namespace of its own: `width`; `vec`; set, zero, + - * /, fma(a,
// b, c) = a * b + c, max(a, b) and min(a, b), which are b where either is NaN, sqrt, power2,
// quick_reciprocal, swap_pairs, if_nan; load(p), load(p, n) (missing lanes are zero), store(p, v),
// store(p, v, n), store_exact(p, v), stream(p, v) and stream_exact(p, v) (aligned to the vector's
// bytes), put<Bypass>(p, v), put2<Bypass>(p, v, w), load_any_order(p), put_same_order<Bypass>(p,
// v), each for float, bf16 and f16; fence, prefetch, look_ahead; sum and largest across lanes.
// math.inl adds exp over any of them. Loading is exact; storing 16 bits rounds to nearest even, and
// makes a denormal bf16 zero in some headers, which the exact stores never do; stream32(to, from)
// moves 32 bytes. For dropout: `longs` (philox.hpp) and store_nonzero(p, v, n).
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

inline float to_float(f16 x) {
  const std::uint32_t sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7fffu;
  std::uint32_t bits = sign | ((rest << 13) + (112u << 23));  // the exponent's other bias
  if (rest >= 0x7c00u) bits = sign | 0x7f800000u | rest << 13;
  if (rest > 0x7c00u) bits |= 0x400000u;  // a NaN is quiet
  float value;
  std::memcpy(&value, &bits, sizeof value);
  if (rest >= 0x400u) return value;
  const float tiny = static_cast<float>(rest) * 0x1p-24f;  // a denormal
  return sign != 0 ? -tiny : tiny;
}

inline f16 to_f16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u)
    return {static_cast<std::uint16_t>(sign | 0x7e00u | (rest >> 13 & 0x3ffu))};
  if (rest >= 0x47800000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // 2^16 and more
  if (rest < 0x38800000u) {  // a denormal: its unit is that of numbers near 0.5
    float shifted;
    std::memcpy(&shifted, &rest, sizeof shifted);
    shifted += 0.5f;
    std::memcpy(&bits, &shifted, sizeof bits);
    return {static_cast<std::uint16_t>(sign | (bits - 0x3f000000u))};
  }
  const std::uint32_t up = rest + 0xfffu + (rest >> 13 & 1u) - (112u << 23);
  return {static_cast<std::uint16_t>(sign | up >> 13)};
}

// Rounds a double to the element type, by way of float.
inline void assign(float& to, double from) {
  to = static_cast<float>(from);
}
inline void assign(bf16& to, double from) {
  to = to_bf16(static_cast<float>(from));
}
inline void assign(f16& to, double from) {
  to = to_f16(static_cast<float>(from));
}

// Four floats at a time, words one at a time: the plainest definition of each operation.
namespace scalar {

#ifndef VELO_INLINE
#define VELO_INLINE static inline __attribute__((always_inline))
#endif

inline constexpr int width = 4;

struct vec {
  using lanes = float __attribute__((vector_size(16)));
  lanes v;
};
VELO_INLINE vec zero() {
  return {vec::lanes{}};
}
VELO_INLINE vec operator+(vec a, vec b) {
  return {a.v + b.v};
}
VELO_INLINE vec set(float x) {
  return {vec::lanes{x, x, x, x}};
}
VELO_INLINE vec fma(vec a, vec b, vec c) {
  return {a.v * b.v + c.v};
}
template <class T>
VELO_INLINE vec load(const T* p, int n = width) {
  vec x{};
  for (int i = 0; i < n; ++i) x.v[i] = to_float(p[i]);
  return x;
}
VELO_INLINE void store(float* p, vec a, int n = width) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
VELO_INLINE void store(bf16* p, vec a, int n = width) {
  for (int i = 0; i < n; ++i) p[i] = to_bf16(a.v[i]);
}
VELO_INLINE void store(f16* p, vec a, int n = width) {
  for (int i = 0; i < n; ++i) p[i] = to_f16(a.v[i]);
}
template <class T>
VELO_INLINE void stream(T* p, vec a) {  // an ordinary store, the only kind here
  store(p, a);
}
template <class T>
VELO_INLINE void store_exact(T* p, vec a) {
  store(p, a);
}
template <class T>
VELO_INLINE void stream_exact(T* p, vec a) {
  store(p, a);
}
VELO_INLINE void stream32(void* to, const void* from) {
  std::memcpy(to, from, 32);
}
VELO_INLINE void fence() {}
struct words {
  static constexpr int width = 1;
  uint32_t v;

  static words zero() { return {0}; }
  static words load(const uint32_t* p, int) { return {*p}; }
  static words load_halves(const uint16_t* p, int n) { return pair(p, n > 1 ? p + 1 : nullptr, 1); }
  template <class T>
  static words widen(const T* p, int) {
    const float value = to_float(*p);
    words w;
    std::memcpy(&w.v, &value, sizeof value);
    return w;
  }
  static words pair(const uint16_t* p, const uint16_t* q, int) {
    return {*p | (q == nullptr ? 0 : static_cast<uint32_t>(*q) << 16)};
  }
  void store(uint32_t* p) const { *p = v; }
  void store_eights(uint32_t* p, int64_t) const { store(p); }
  static void store_eight(const words (&r)[8], uint32_t* p) {
    for (int i = 0; i < 8; ++i) p[i] = r[i].v;
  }
  static void turn(words (&)[width]) {}
};

inline constexpr int sum_rows = 4, sum_vectors = 2;
using dot_operand = void;

}  // namespace scalar
}  // namespace velo::simd
