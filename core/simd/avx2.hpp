// Eight floats at a time (AVX2 + FMA): the vector type over which kernels are written; see
// scalar.hpp for the contract.
//
// Only files compiled for AVX2 may include this. Tails are read and written through a mask (float)
// or a small copy (16 bits). valgrind runs this version.
#pragma once

#include <immintrin.h>

#include "core/simd/types.hpp"

namespace velo::simd::avx2 {

#ifndef VELO_INLINE
#define VELO_INLINE static inline __attribute__((always_inline))
#endif

inline constexpr int width = 8;

struct vec {
  __m256 v;
};

VELO_INLINE vec set(float x) {
  return {_mm256_set1_ps(x)};
}
VELO_INLINE vec zero() {
  return {_mm256_setzero_ps()};
}
VELO_INLINE vec operator+(vec a, vec b) {
  return {_mm256_add_ps(a.v, b.v)};
}
VELO_INLINE vec operator-(vec a, vec b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
VELO_INLINE vec operator*(vec a, vec b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
VELO_INLINE vec operator/(vec a, vec b) {
  return {_mm256_div_ps(a.v, b.v)};
}
VELO_INLINE vec fma(vec a, vec b, vec c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
VELO_INLINE vec max(vec a, vec b) {
  return {_mm256_max_ps(a.v, b.v)};
}
VELO_INLINE vec min(vec a, vec b) {
  return {_mm256_min_ps(a.v, b.v)};
}
VELO_INLINE vec sqrt(vec a) {
  return {_mm256_sqrt_ps(a.v)};
}
// a * 2^n for an integral n in [-252, 254], in two exact halves, so that the ends give 0 and
// infinity.
VELO_INLINE __m256 power2(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
VELO_INLINE vec scale2(vec a, vec n) {
  const __m256i whole = _mm256_cvtps_epi32(n.v);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  return {_mm256_mul_ps(_mm256_mul_ps(a.v, power2(half)), power2(_mm256_sub_epi32(whole, half)))};
}
// 2^n for t = n + 127 + 1.5 * 2^23, see avx512.hpp.
VELO_INLINE vec power2(vec t) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t.v), 23))};
}
// Divides, since the processor's own estimate has only 11 bits.
VELO_INLINE vec quick_reciprocal(vec a) {
  return {_mm256_div_ps(_mm256_set1_ps(1.0f), a.v)};
}
// Exchanges neighbors: lanes 1 0 3 2 ..
VELO_INLINE vec swap_pairs(vec a) {
  return {_mm256_permute_ps(a.v, 0xb1)};
}
VELO_INLINE vec if_nan(vec a, vec yes, vec no) {
  return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q))};
}

VELO_INLINE __m256i first(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

VELO_INLINE vec load(const float* p) {
  return {_mm256_loadu_ps(p)};
}
VELO_INLINE vec load(const float* p, int n) {
  return {_mm256_maskload_ps(p, first(n))};
}
VELO_INLINE void store(float* p, vec a) {
  _mm256_storeu_ps(p, a.v);
}
VELO_INLINE void store(float* p, vec a, int n) {
  _mm256_maskstore_ps(p, first(n), a.v);
}
VELO_INLINE void stream(float* p, vec a) {
  _mm256_stream_ps(p, a.v);
}

VELO_INLINE vec widen(__m128i half) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))};
}
// A bf16 in the upper half of each lane, rounded to nearest even, with NaN made quiet.
VELO_INLINE __m256i round_to_upper_half(vec a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  return _mm256_blendv_epi8(up, quiet, _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)));
}
VELO_INLINE __m256i narrow(vec a, vec b) {
  const __m256i low = _mm256_srli_epi32(round_to_upper_half(a), 16);
  const __m256i high = _mm256_srli_epi32(round_to_upper_half(b), 16);
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
}
VELO_INLINE __m128i narrow(vec a) {
  return _mm256_castsi256_si128(narrow(a, a));
}
VELO_INLINE __m256i pairs(vec even, vec odd) {
  const __m256i low = _mm256_srli_epi32(round_to_upper_half(even), 16);
  return _mm256_blend_epi16(low, round_to_upper_half(odd), 0xaa);
}
VELO_INLINE vec load(const bf16* p) {
  return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
VELO_INLINE vec load(const bf16* p, int n) {
  bf16 copy[width] = {};
  for (int i = 0; i < n; ++i) copy[i] = p[i];
  return load(copy);
}
VELO_INLINE void store(bf16* p, vec a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(a));
}
VELO_INLINE void store(bf16* p, vec a, int n) {
  bf16 copy[width];
  store(copy, a);
  for (int i = 0; i < n; ++i) p[i] = copy[i];
}
VELO_INLINE void stream(bf16* p, vec a) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), narrow(a));
}

VELO_INLINE __m128i half_precision(vec a) {
  return _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VELO_INLINE vec load(const f16* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
VELO_INLINE vec load(const f16* p, int n) {
  f16 copy[width] = {};
  for (int i = 0; i < n; ++i) copy[i] = p[i];
  return load(copy);
}
VELO_INLINE void store(f16* p, vec a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), half_precision(a));
}
VELO_INLINE void store(f16* p, vec a, int n) {
  f16 copy[width];
  store(copy, a);
  for (int i = 0; i < n; ++i) p[i] = copy[i];
}
VELO_INLINE void stream(f16* p, vec a) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), half_precision(a));
}

// Two vectors side by side.
VELO_INLINE __m256i half_precision(vec a, vec b) {
  return _mm256_set_m128i(half_precision(b), half_precision(a));
}

template <bool Bypass, class T>
VELO_INLINE void put(T* to, vec value) {
  if (Bypass) {
    stream(to, value);
  } else {
    store(to, value);
  }
}

template <class T>
VELO_INLINE void store_exact(T* to, vec value) {
  store(to, value);
}
template <class T>
VELO_INLINE void stream_exact(T* to, vec value) {
  stream(to, value);
}
VELO_INLINE void stream32(void* to, const void* from) {
  _mm256_stream_si256(static_cast<__m256i*>(to),
                      _mm256_loadu_si256(static_cast<const __m256i*>(from)));
}
template <bool Bypass>
VELO_INLINE void put2(float* to, vec a, vec b) {
  put<Bypass>(to, a);
  put<Bypass>(to + width, b);
}
template <bool Bypass>
VELO_INLINE void put_words(void* to, __m256i words) {
  if (Bypass) {
    _mm256_stream_si256(static_cast<__m256i*>(to), words);
  } else {
    _mm256_storeu_si256(static_cast<__m256i*>(to), words);
  }
}
template <bool Bypass>
VELO_INLINE void put2(bf16* to, vec a, vec b) {
  put_words<Bypass>(to, narrow(a, b));
}
template <bool Bypass>
VELO_INLINE void put2(f16* to, vec a, vec b) {
  put_words<Bypass>(to, half_precision(a, b));
}

// Two vectors in the order that costs least, see avx512.hpp.
struct vec2 {
  vec a, b;
};
template <class T>
VELO_INLINE vec2 load_any_order(const T* p) {
  return {load(p), load(p + width)};
}
VELO_INLINE vec2 load_any_order(const bf16* p) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {{_mm256_castsi256_ps(_mm256_slli_epi32(words, 16))},
          {_mm256_castsi256_ps(_mm256_and_si256(words, upper))}};
}
template <bool Bypass, class T>
VELO_INLINE void put_same_order(T* to, vec2 x) {
  put2<Bypass>(to, x.a, x.b);
}
template <bool Bypass>
VELO_INLINE void put_same_order(bf16* to, vec2 x) {
  put_words<Bypass>(to, pairs(x.a, x.b));
}

VELO_INLINE void fence() {
  _mm_sfence();
}
VELO_INLINE void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
// See avx512.hpp.
template <class T>
VELO_INLINE void look_ahead(const T* p) {
  const char* later = reinterpret_cast<const char*>(p) + 2048;
  prefetch(later);
  if (2 * width * sizeof(T) > 64) prefetch(later + 64);
}

VELO_INLINE float sum(vec a) {
  const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}
VELO_INLINE float largest(vec a) {
  const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}

// The functions below are described in avx512.hpp.
// t is clamped to where the result is 0 or infinity, so that -Inf has a fraction; NaN stays NaN.
VELO_INLINE vec within_exponents(vec t) {
  return max(set(-160.0f), min(set(140.0f), t));
}
VELO_INLINE vec fraction(vec t) {
  const vec u = within_exponents(t);
  return {_mm256_sub_ps(u.v, _mm256_floor_ps(u.v))};
}
VELO_INLINE vec scale2_floor(vec a, vec t) {
  return scale2(a, {_mm256_floor_ps(within_exponents(t).v)});
}
VELO_INLINE vec if_equal(vec a, vec b, vec yes, vec no) {
  return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ))};
}
VELO_INLINE vec if_greater(vec a, vec b, vec yes, vec no) {
  return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ))};
}
VELO_INLINE bool all_equal(vec a, vec b) {
  return _mm256_movemask_ps(_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)) == 0xff;
}
VELO_INLINE bool all_within(vec a, vec b, vec most) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 larger = _mm256_max_ps(_mm256_andnot_ps(sign, a.v), _mm256_andnot_ps(sign, b.v));
  return _mm256_movemask_ps(_mm256_cmp_ps(larger, most.v, _CMP_NLE_UQ)) == 0;
}
VELO_INLINE vec if_zero_bytes(const uint8_t* p, int n, vec yes, vec no) {
  uint8_t copy[width] = {};
  for (int i = 0; i < n; ++i) copy[i] = p[i];
  const __m256i bytes =
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(copy)));
  const __m256i zero = _mm256_cmpeq_epi32(bytes, _mm256_setzero_si256());
  return {_mm256_blendv_ps(no.v, yes.v, _mm256_castsi256_ps(zero))};
}
VELO_INLINE vec keep_first(int n, vec a, vec b) {
  return {_mm256_blendv_ps(b.v, a.v, _mm256_castsi256_ps(first(n)))};
}
VELO_INLINE void largest4(vec a, vec b, vec c, vec d, float* to) {
  const __m256 ab = _mm256_max_ps(_mm256_unpacklo_ps(a.v, b.v), _mm256_unpackhi_ps(a.v, b.v));
  const __m256 cd = _mm256_max_ps(_mm256_unpacklo_ps(c.v, d.v), _mm256_unpackhi_ps(c.v, d.v));
  const __m256 all =
      _mm256_max_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  _mm_storeu_ps(to, _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}
VELO_INLINE void store2(float* p, vec a, vec b) {
  store(p, a);
  store(p + width, b);
}
VELO_INLINE void store2(bf16* p, vec a, vec b) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(a, b));
}
VELO_INLINE void store2(f16* p, vec a, vec b) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), half_precision(a, b));
}
VELO_INLINE void store_pairs(uint32_t* p, vec even, vec odd) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), pairs(even, odd));
}
VELO_INLINE void store_rows_and_pairs(bf16* even, bf16* odd, uint32_t* first, uint32_t* second,
                                      const vec (&a)[2], const vec (&b)[2]) {
  store2(even, a[0], a[1]);
  store2(odd, b[0], b[1]);
  store_pairs(first, a[0], b[0]);
  store_pairs(second, a[1], b[1]);
}
// Four counters of 64 bits, see avx512.hpp.
struct longs {
  using vec = avx2::vec;
  using bits = __m256i;
  static constexpr int words = width;
  __m256i v;

  static __attribute__((always_inline)) longs set(uint64_t x) {
    return {_mm256_set1_epi64x(static_cast<long long>(x))};
  }
  static __attribute__((always_inline)) longs counters(uint64_t first) {
    return {_mm256_add_epi64(set(first).v, _mm256_setr_epi64x(0, 2, 1, 3))};
  }
  __attribute__((always_inline)) longs high() const { return {_mm256_srli_epi64(v, 32)}; }
  static __attribute__((always_inline)) longs multiply(longs a, uint32_t b) {
    return {_mm256_mul_epu32(a.v, set(b).v)};
  }
  static __attribute__((always_inline)) longs mix(longs a, longs b, uint32_t key) {
    return {_mm256_xor_si256(_mm256_xor_si256(a.v, b.v), _mm256_set1_epi32(static_cast<int>(key)))};
  }
  static __attribute__((always_inline)) void interleave(longs a, longs b, longs c, longs d,
                                                        bits (&to)[2]) {
    const __m256i low = _mm256_blend_epi32(a.v, _mm256_slli_epi64(b.v, 32), 0xaa);
    const __m256i upper = _mm256_blend_epi32(c.v, _mm256_slli_epi64(d.v, 32), 0xaa);
    to[0] = _mm256_unpacklo_epi64(low, upper);
    to[1] = _mm256_unpackhi_epi64(low, upper);
  }
  static __attribute__((always_inline)) bits slide(bits a, bits b, int n) {
    const __m256i lanes =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(n));
    return _mm256_blendv_epi8(_mm256_permutevar8x32_epi32(a, lanes),
                              _mm256_permutevar8x32_epi32(b, lanes),
                              _mm256_cmpgt_epi32(lanes, _mm256_set1_epi32(width - 1)));
  }
  static __attribute__((always_inline)) vec if_at_least(bits a, uint32_t least, float yes) {
    const __m256i larger = _mm256_max_epu32(a, _mm256_set1_epi32(static_cast<int>(least)));
    return {_mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(larger, a)), _mm256_set1_ps(yes))};
  }
};

// 1 where a lane is not zero, else 0, in the first n bytes.
VELO_INLINE void store_nonzero(uint8_t* p, vec a, int n) {
  const __m256i is = _mm256_castps_si256(_mm256_cmp_ps(a.v, _mm256_setzero_ps(), _CMP_NEQ_UQ));
  const __m128i halves =
      _mm_packs_epi32(_mm256_castsi256_si128(is), _mm256_extracti128_si256(is, 1));
  const __m128i bytes = _mm_and_si128(_mm_packs_epi16(halves, halves), _mm_set1_epi8(1));
  if (n == width) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), bytes);
    return;
  }
  uint8_t copy[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(copy), bytes);
  for (int i = 0; i < n; ++i) p[i] = copy[i];
}

// Vectors of words, for moving them: the first n of a row, or all of them if n is width (twice as
// many halves); missing lanes are zero.
struct words {
  static constexpr int width = 8;
  __m256i v;

  // The first n halves of a vector, through a copy, since AVX2 masks only whole words.
  static __m256i some_halves(const uint16_t* p, int n) {
    uint16_t copy[2 * width] = {};
    for (int i = 0; i < n; ++i) copy[i] = p[i];
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(copy));
  }
  static words zero() { return {_mm256_setzero_si256()}; }
  static words load(const uint32_t* p, int n) {
    return n == width ? words{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}
                      : words{_mm256_maskload_epi32(reinterpret_cast<const int*>(p), first(n))};
  }
  static words load_halves(const uint16_t* p, int n) {
    return n == 2 * width ? words{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}
                          : words{some_halves(p, n)};
  }
  static __m256i spread(const uint16_t* p, int n) {  // n bf16, one to a word
    return _mm256_cvtepu16_epi32(n == width ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
                                            : _mm256_castsi256_si128(some_halves(p, n)));
  }
  static words widen(const bf16* p, int n) {
    return {_mm256_slli_epi32(spread(reinterpret_cast<const uint16_t*>(p), n), 16)};
  }
  static words widen(const f16* p, int n) {
    return {_mm256_castps_si256((n == width ? avx2::load(p) : avx2::load(p, n)).v)};
  }
  static words pair(const uint16_t* p, const uint16_t* q, int n) {
    const __m256i even = spread(p, n);
    if (q == nullptr) return {even};
    return {_mm256_or_si256(even, _mm256_slli_epi32(spread(q, n), 16))};
  }
  void store(uint32_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  void store_eights(uint32_t* p, int64_t) const { store(p); }

  static void turn(words (&r)[width]) {
    __m256i t[width];
#pragma GCC unroll 4
    for (int i = 0; i < width; i += 2) {
      t[i] = _mm256_unpacklo_epi32(r[i].v, r[i + 1].v);
      t[i + 1] = _mm256_unpackhi_epi32(r[i].v, r[i + 1].v);
    }
    __m256i q[width];
#pragma GCC unroll 2
    for (int i = 0; i < width; i += 4) {
      q[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
      q[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
      q[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
      q[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      r[c].v = _mm256_permute2x128_si256(q[c], q[4 + c], 0x20);
      r[4 + c].v = _mm256_permute2x128_si256(q[c], q[4 + c], 0x31);
    }
  }

  static void store_eight(words (&r)[8], uint32_t* p) {
    turn(r);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) r[i].store(p + 8 * i);
  }
};

// Rows and vectors of a block of sums that fits in the registers beside a row of vectors.
inline constexpr int sum_rows = 4, sum_vectors = 3;

using dot_operand = void;  // nothing multiplies pairs of bf16 here

}  // namespace velo::simd::avx2
