// avx2.hpp for integers of 8 and 4 bits: runs of them as floats, and floats rounded to them. Two
// int4 lie in a byte, the first in its low half.
#pragma once

#include "core/simd/avx2.hpp"
#include "core/simd/byte_words.hpp"

namespace velo::simd::avx2 {

VELO_INLINE vec from_bytes(__m128i bytes) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
}
// Bytes of two int4 become bytes of one.
VELO_INLINE __m128i halves_apart(__m128i pairs) {
  const __m128i low = _mm_set1_epi8(0xf), sign = _mm_set1_epi8(8);
  const __m128i four =
      _mm_unpacklo_epi8(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 4), low));
  return _mm_sub_epi8(_mm_xor_si128(four, sign), sign);
}

VELO_INLINE vec load(const int8_t* p) {
  return from_bytes(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
VELO_INLINE vec load(const int8_t* p, int n) {
  if (n == width) return load(p);
  int8_t copy[16] = {};
  for (int i = 0; i < n; ++i) copy[i] = p[i];
  return load(copy);
}
VELO_INLINE vec load_int4(const uint8_t* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof word);
  return from_bytes(halves_apart(_mm_cvtsi32_si128(word)));
}
VELO_INLINE vec load_int4(const uint8_t* p, int n) {
  if (n == width) return load_int4(p);
  uint8_t copy[4] = {};
  for (int i = 0; 2 * i < n; ++i) copy[i] = p[i];
  return load_int4(copy);
}

// See avx512_bytes.hpp.
struct even_odd {
  vec even, odd;
};
VELO_INLINE even_odd load_int4_apart(const uint8_t* p) {
  const __m256i pairs = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m256i even = _mm256_srai_epi32(_mm256_slli_epi32(pairs, 28), 28),
                odd = _mm256_srai_epi32(_mm256_slli_epi32(pairs, 24), 28);
  return {{_mm256_cvtepi32_ps(even)}, {_mm256_cvtepi32_ps(odd)}};
}
VELO_INLINE even_odd apart(vec a, vec b) {
  const __m256 low = _mm256_permute2f128_ps(a.v, b.v, 0x20),
               high = _mm256_permute2f128_ps(a.v, b.v, 0x31);
  return {{_mm256_shuffle_ps(low, high, 0x88)}, {_mm256_shuffle_ps(low, high, 0xdd)}};
}
VELO_INLINE vec2 together(even_odd x) {
  const __m256 low = _mm256_unpacklo_ps(x.even.v, x.odd.v),
               high = _mm256_unpackhi_ps(x.even.v, x.odd.v);
  return {{_mm256_permute2f128_ps(low, high, 0x20)}, {_mm256_permute2f128_ps(low, high, 0x31)}};
}

// See avx512_bytes.hpp.
VELO_INLINE vec larger_magnitude(vec a, vec x) {
  const __m256i bits = _mm256_and_si256(_mm256_castps_si256(x.v), _mm256_set1_epi32(0x7fffffff));
  return {_mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(a.v), bits))};
}
VELO_INLINE float largest_magnitude(vec a) {
  uint32_t lanes[width], most = 0;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), _mm256_castps_si256(a.v));
  for (const uint32_t lane : lanes) most = lane > most ? lane : most;
  float x;
  __builtin_memcpy(&x, &most, sizeof x);
  return x;
}

// Rounds to nearest even. Every lane lies within the integers.
VELO_INLINE __m128i rounded_bytes(vec a) {
  const __m256i all = _mm256_cvtps_epi32(a.v);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  return _mm_packs_epi16(words, words);
}
VELO_INLINE void store(int8_t* p, vec a, int n = width) {
  int8_t copy[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(copy), rounded_bytes(a));
  if (n == width) {
    __builtin_memcpy(p, copy, width);
    return;
  }
  for (int i = 0; i < n; ++i) p[i] = copy[i];
}
// See avx512_bytes.hpp.
VELO_INLINE __m256i rounded_bytes(vec a, vec b, vec c, vec d) {
  const __m256i ab = _mm256_packs_epi32(_mm256_cvtps_epi32(a.v), _mm256_cvtps_epi32(b.v));
  const __m256i cd = _mm256_packs_epi32(_mm256_cvtps_epi32(c.v), _mm256_cvtps_epi32(d.v));
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd),
                                     _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
template <bool Bypass>
VELO_INLINE void put4(int8_t* to, vec a, vec b, vec c, vec d) {
  put_words<Bypass>(to, rounded_bytes(a, b, c, d));
}
VELO_INLINE void store4_int4(uint8_t* to, vec a, vec b, vec c, vec d) {
  const __m256i four = rounded_bytes(a, b, c, d);
  const __m256i low = _mm256_set1_epi16(0xf), high = _mm256_set1_epi16(0xf0);
  const __m256i pairs = _mm256_or_si256(_mm256_and_si256(four, low),
                                        _mm256_and_si256(_mm256_srli_epi16(four, 4), high));
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(to),
      _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1)));
}
VELO_INLINE void store_int4(uint8_t* p, vec a, int n = width) {
  uint8_t copy[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(copy), rounded_bytes(a));
  for (int i = 0; 2 * i < n; ++i)
    p[i] = static_cast<uint8_t>((copy[2 * i] & 0xf) | copy[2 * i + 1] << 4);
}

// Sums in int32 of products of pairs of int16. vpmaddubsw, which takes bytes, would saturate.
struct ints {
  using words = short_pairs;
  static constexpr uint8_t zero_byte = 0;  // what is added to every byte of the left side
  __m256i v;

  static __attribute__((always_inline)) ints zero() { return {_mm256_setzero_si256()}; }
  static __attribute__((always_inline)) ints load(const void* p) {
    return {_mm256_loadu_si256(static_cast<const __m256i*>(p))};
  }
  __attribute__((always_inline)) void store(void* p) const {
    _mm256_storeu_si256(static_cast<__m256i*>(p), v);
  }
  static __attribute__((always_inline)) ints broadcast(const void* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof word);
    return {_mm256_set1_epi32(word)};
  }
  static __attribute__((always_inline)) ints dot(ints sums, ints a, ints b) {
    return {_mm256_add_epi32(sums.v, _mm256_madd_epi16(a.v, b.v))};
  }
  __attribute__((always_inline)) ints plus(ints b) const { return {_mm256_add_epi32(v, b.v)}; }
  __attribute__((always_inline)) ints negative() const { return {_mm256_sub_epi32(zero().v, v)}; }
  __attribute__((always_inline)) vec to_floats() const { return {_mm256_cvtepi32_ps(v)}; }
};

}  // namespace velo::simd::avx2
