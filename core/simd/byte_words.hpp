// Bytes along the depth of a product become words: quads of int8, or pairs of int16. Instructions
// that every vector ISA has.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#ifndef VELO_INLINE
#define VELO_INLINE static inline __attribute__((always_inline))
#endif

namespace velo::simd {

// Sixteen columns of four rows, `n` of them and `rows` of these there, the others zero.
struct byte_rows {
  __m128i row[4];

  static __attribute__((always_inline)) byte_rows load(const int8_t* p, int64_t ld, int rows,
                                                       int n) {
    byte_rows out;
    for (int i = 0; i < 4; ++i) {
      if (i >= rows) {
        out.row[i] = _mm_setzero_si128();
      } else if (n == 16) {
        out.row[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * ld));
      } else {
        int8_t copy[16] = {};
        for (int j = 0; j < n; ++j) copy[j] = p[i * ld + j];
        out.row[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(copy));
      }
    }
    return out;
  }
};

// Four bytes to a word.
struct byte_quads {
  static constexpr int elements = 4;  // of a word

  // One word of sixteen columns.
  static __attribute__((always_inline)) void take(const byte_rows& r, uint32_t* to, int64_t) {
    const __m128i low = _mm_unpacklo_epi8(r.row[0], r.row[1]),
                  high = _mm_unpackhi_epi8(r.row[0], r.row[1]),
                  low2 = _mm_unpacklo_epi8(r.row[2], r.row[3]),
                  high2 = _mm_unpackhi_epi8(r.row[2], r.row[3]);
    auto* at = reinterpret_cast<__m128i*>(to);
    _mm_storeu_si128(at, _mm_unpacklo_epi16(low, low2));
    _mm_storeu_si128(at + 1, _mm_unpackhi_epi16(low, low2));
    _mm_storeu_si128(at + 2, _mm_unpacklo_epi16(high, high2));
    _mm_storeu_si128(at + 3, _mm_unpackhi_epi16(high, high2));
  }
  // Four neighbors along the depth.
  static __attribute__((always_inline)) void take(uint32_t four, uint32_t* to, int64_t) {
    *to = four;
  }
};

// Two bytes to a word, as int16: four rows are two words, `step` apart.
struct short_pairs {
  static constexpr int elements = 2;

  static __attribute__((always_inline)) void take_two(__m128i a, __m128i b, uint32_t* to) {
    auto* at = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(at, _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)));
    _mm256_storeu_si256(at + 1, _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b)));
  }
  static __attribute__((always_inline)) void take(const byte_rows& r, uint32_t* to, int64_t step) {
    take_two(r.row[0], r.row[1], to);
    take_two(r.row[2], r.row[3], to + step);
  }
  static __attribute__((always_inline)) void take(uint32_t four, uint32_t* to, int64_t step) {
    const __m128i wide = _mm_cvtepi8_epi16(_mm_cvtsi32_si128(static_cast<int>(four)));
    to[0] = static_cast<uint32_t>(_mm_cvtsi128_si32(wide));
    to[step] = static_cast<uint32_t>(_mm_extract_epi32(wide, 1));
  }
};

}  // namespace velo::simd
