// avx512.hpp for integers of 8 and 4 bits: runs of them as floats, and floats rounded to them. Two
// int4 lie in a byte, the first in its low half.
#pragma once

#include "core/simd/avx512.hpp"
#include "core/simd/byte_words.hpp"

namespace velo::simd::avx512 {

VELO_INLINE vec load(const int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
VELO_INLINE vec load(const int8_t* p, int n) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first(n), p)))};
}
// A permutation reads the low four bits of a lane, so it is a table of the sixteen values.
VELO_INLINE vec from_int4(__m128i pairs) {
  const __m128i four = _mm_unpacklo_epi8(pairs, _mm_srli_epi16(pairs, 4));
  const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
  return {_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(four), values)};
}
VELO_INLINE vec load_int4(const uint8_t* p) {
  return from_int4(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
VELO_INLINE vec load_int4(const uint8_t* p, int n) {
  return from_int4(_mm_maskz_loadu_epi8(first((n + 1) / 2), p));
}

// Two vectors of int4, first the even ones and then the odd ones, which takes fewer instructions.
struct even_odd {
  vec even, odd;
};
VELO_INLINE even_odd load_int4_apart(const uint8_t* p) {
  const __m512i pairs = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
  return {{_mm512_permutexvar_ps(pairs, values)},
          {_mm512_permutexvar_ps(_mm512_srli_epi32(pairs, 4), values)}};
}
// Two vectors in the order of their elements, and back.
VELO_INLINE even_odd apart(vec a, vec b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return {{_mm512_permutex2var_ps(a.v, even, b.v)}, {_mm512_permutex2var_ps(a.v, odd, b.v)}};
}
VELO_INLINE vec2 together(even_odd x) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  return {{_mm512_permutex2var_ps(x.even.v, low, x.odd.v)},
          {_mm512_permutex2var_ps(x.even.v, high, x.odd.v)}};
}

// Magnitudes by their bits, which order as the numbers do, NaN above all: those of x where they are
// larger than those in a, and the largest lane.
VELO_INLINE vec larger_magnitude(vec a, vec x) {
  const __m512i bits = _mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff));
  return {_mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a.v), bits))};
}
VELO_INLINE float largest_magnitude(vec a) {
  const uint32_t bits = _mm512_reduce_max_epu32(_mm512_castps_si512(a.v));
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Rounds to nearest even. Every lane lies within the integers.
VELO_INLINE __m128i rounded_bytes(vec a) {
  return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v));
}
VELO_INLINE void store(int8_t* p, vec a, int n = width) {
  _mm_mask_storeu_epi8(p, first(n), rounded_bytes(a));
}
// Four vectors side by side.
VELO_INLINE __m512i rounded_bytes(vec a, vec b, vec c, vec d) {
  const __m512i ab = _mm512_packs_epi32(_mm512_cvtps_epi32(a.v), _mm512_cvtps_epi32(b.v));
  const __m512i cd = _mm512_packs_epi32(_mm512_cvtps_epi32(c.v), _mm512_cvtps_epi32(d.v));
  const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(lanes, _mm512_packs_epi16(ab, cd));
}
template <bool Bypass>
VELO_INLINE void put4(int8_t* to, vec a, vec b, vec c, vec d) {
  put_words<Bypass>(to, rounded_bytes(a, b, c, d));
}
VELO_INLINE void store4_int4(uint8_t* to, vec a, vec b, vec c, vec d) {
  const __m512i four = rounded_bytes(a, b, c, d);
  const __m512i low = _mm512_set1_epi16(0xf), high = _mm512_set1_epi16(0xf0);
  const __m512i pairs = _mm512_or_si512(_mm512_and_si512(four, low),
                                        _mm512_and_si512(_mm512_srli_epi16(four, 4), high));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi16_epi8(pairs));
}
VELO_INLINE void store_int4(uint8_t* p, vec a, int n = width) {
  const __m128i four = rounded_bytes(a), low = _mm_set1_epi16(0xf), high = _mm_set1_epi16(0xf0);
  const __m128i pairs =
      _mm_or_si128(_mm_and_si128(four, low), _mm_and_si128(_mm_srli_epi16(four, 4), high));
  _mm_mask_storeu_epi8(p, first((n + 1) / 2), _mm_cvtepi16_epi8(pairs));
}

// Sums in int32. Products says which words are multiplied, and how.
template <class Products>
struct int_sums {
  using words = typename Products::words;
  // Added to every byte of the left side.
  static constexpr uint8_t zero_byte = Products::zero_byte;
  __m512i v;

  static __attribute__((always_inline)) int_sums zero() { return {_mm512_setzero_si512()}; }
  static __attribute__((always_inline)) int_sums load(const void* p) {
    return {_mm512_loadu_si512(p)};
  }
  __attribute__((always_inline)) void store(void* p) const { _mm512_storeu_si512(p, v); }
  static __attribute__((always_inline)) int_sums broadcast(const void* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof word);
    return {_mm512_set1_epi32(word)};
  }
  static __attribute__((always_inline)) int_sums dot(int_sums sums, int_sums a, int_sums b) {
    return {Products::add(sums.v, a.v, b.v)};
  }
  __attribute__((always_inline)) int_sums plus(int_sums b) const {
    return {_mm512_add_epi32(v, b.v)};
  }
  __attribute__((always_inline)) int_sums negative() const {
    return {_mm512_sub_epi32(zero().v, v)};
  }
  __attribute__((always_inline)) vec to_floats() const { return {_mm512_cvtepi32_ps(v)}; }
};

// Pairs of int16. vpmaddubsw, which takes bytes, would saturate.
struct pair_products {
  using words = short_pairs;
  static constexpr uint8_t zero_byte = 0;
  static __attribute__((always_inline)) __m512i add(__m512i sums, __m512i a, __m512i b) {
    return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b));
  }
};
using ints = int_sums<pair_products>;

}  // namespace velo::simd::avx512
