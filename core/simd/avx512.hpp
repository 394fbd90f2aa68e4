// Sixteen floats at a time (AVX-512 F/BW/DQ/VL): the vector type over which kernels are written;
// see scalar.hpp for the contract.
//
// Only files compiled for AVX-512 may include this. Everything is always_inline in a namespace of
// its own, so that no copy of it is linked into code for older processors. bf16 stores round to
// nearest even and keep NaN quiet.
#pragma once

#include <immintrin.h>

#include "core/simd/types.hpp"

namespace velo::simd::avx512 {

#define VELO_INLINE static inline __attribute__((always_inline))

inline constexpr int width = 16;

struct vec {
  __m512 v;
};

VELO_INLINE vec set(float x) {
  return {_mm512_set1_ps(x)};
}
VELO_INLINE vec zero() {
  return {_mm512_setzero_ps()};
}
VELO_INLINE vec operator+(vec a, vec b) {
  return {_mm512_add_ps(a.v, b.v)};
}
VELO_INLINE vec operator-(vec a, vec b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
VELO_INLINE vec operator*(vec a, vec b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
VELO_INLINE vec operator/(vec a, vec b) {
  return {_mm512_div_ps(a.v, b.v)};
}
VELO_INLINE vec fma(vec a, vec b, vec c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
VELO_INLINE vec max(vec a, vec b) {
  return {_mm512_max_ps(a.v, b.v)};
}
VELO_INLINE vec min(vec a, vec b) {
  return {_mm512_min_ps(a.v, b.v)};
}
VELO_INLINE vec sqrt(vec a) {
  return {_mm512_sqrt_ps(a.v)};
}
// 2^n for t = n + 127 + 1.5 * 2^23 with n in [-127, 128]; the ends give 0 and infinity. The low
// bits of t are the exponent.
VELO_INLINE vec power2(vec t) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(t.v), 23))};
}
// 1 / a for a normal number below 2^126, to an ulp: the estimate of 14 bits and a Newton step. A
// division takes 16 cycles on Intel's processors.
VELO_INLINE vec quick_reciprocal(vec a) {
  const vec r{_mm512_rcp14_ps(a.v)};
  return fma(r, {_mm512_fnmadd_ps(a.v, r.v, _mm512_set1_ps(1.0f))}, r);
}
// Exchanges neighbors: lanes 1 0 3 2 ..
VELO_INLINE vec swap_pairs(vec a) {
  return {_mm512_permute_ps(a.v, 0xb1)};
}
// yes where a is NaN, else no.
VELO_INLINE vec if_nan(vec a, vec yes, vec no) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), no.v, yes.v)};
}

VELO_INLINE __mmask16 first(int n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}

VELO_INLINE vec load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
VELO_INLINE vec load(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first(n), p)};
}
VELO_INLINE void store(float* p, vec a) {
  _mm512_storeu_ps(p, a.v);
}
VELO_INLINE void store(float* p, vec a, int n) {
  _mm512_mask_storeu_ps(p, first(n), a.v);
}
VELO_INLINE void stream(float* p, vec a) {
  _mm512_stream_ps(p, a.v);
}

VELO_INLINE vec widen(__m256i half) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
// A bf16 in the upper half of each lane, rounded to nearest even, with NaN made quiet. The odd bit
// is a mask, and fixupimm handles NaN: 4 instructions, where shifting and comparing take 6.
VELO_INLINE __m512i round_to_upper_half(vec a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  __m512i up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  up = _mm512_mask_add_epi32(up, odd, up, _mm512_set1_epi32(1));
  const __m512i nan_from_a = _mm512_set1_epi32(0x22);  // quiet and signaling NaN: a as a quiet NaN
  return _mm512_castps_si512(_mm512_fixupimm_ps(_mm512_castsi512_ps(up), a.v, nan_from_a, 0));
}
VELO_INLINE __m256i narrow(vec a) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_to_upper_half(a), 16));
}
// The upper halves of two vectors side by side.
VELO_INLINE __m512i narrow(vec a, vec b) {
  const __m512i upper =
      _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                       25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi16(round_to_upper_half(a), upper, round_to_upper_half(b));
}
// Two vectors as pairs: even[0], odd[0], even[1], ..
VELO_INLINE __m512i pairs(vec even, vec odd) {
  const __m512i low = _mm512_srli_epi32(round_to_upper_half(even), 16);
  const __m512i high =
      _mm512_and_si512(round_to_upper_half(odd), _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
  return _mm512_or_si512(low, high);
}
VELO_INLINE vec load(const bf16* p) {
  return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
VELO_INLINE vec load(const bf16* p, int n) {
  return widen(_mm256_maskz_loadu_epi16(first(n), p));
}
VELO_INLINE void store(bf16* p, vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(a));
}
VELO_INLINE void store(bf16* p, vec a, int n) {
  _mm256_mask_storeu_epi16(p, first(n), narrow(a));
}
VELO_INLINE void stream(bf16* p, vec a) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), narrow(a));
}

VELO_INLINE __m256i half_precision(vec a) {
  return _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VELO_INLINE vec load(const f16* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
VELO_INLINE vec load(const f16* p, int n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p))};
}
VELO_INLINE void store(f16* p, vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), half_precision(a));
}
VELO_INLINE void store(f16* p, vec a, int n) {
  _mm256_mask_storeu_epi16(p, first(n), half_precision(a));
}
VELO_INLINE void stream(f16* p, vec a) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), half_precision(a));
}

// Two vectors side by side.
VELO_INLINE __m512i half_precision(vec a, vec b) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(half_precision(a)), half_precision(b), 1);
}

// Stores around the cache or through it, as the kernel asks.
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
// Two vectors, side by side.
template <bool Bypass>
VELO_INLINE void put2(float* to, vec a, vec b) {
  put<Bypass>(to, a);
  put<Bypass>(to + width, b);
}
template <bool Bypass>
VELO_INLINE void put_words(void* to, __m512i words) {
  if (Bypass) {
    _mm512_stream_si512(static_cast<__m512i*>(to), words);
  } else {
    _mm512_storeu_si512(to, words);
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

// Two vectors' worth of elements in the order that is cheapest to load and store, for code that
// treats all elements alike. bf16 are loaded as even and odd neighbors (1 instruction a vector to
// load, 5 to store, against 2 and 5.5 side by side).
struct vec2 {
  vec a, b;
};
template <class T>
VELO_INLINE vec2 load_any_order(const T* p) {
  return {load(p), load(p + width)};
}
VELO_INLINE vec2 load_any_order(const bf16* p) {
  const __m512i words = _mm512_loadu_si512(p);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(words, 16))},
          {_mm512_castsi512_ps(_mm512_and_si512(words, upper))}};
}
template <bool Bypass, class T>
VELO_INLINE void put_same_order(T* to, vec2 x) {
  put2<Bypass>(to, x.a, x.b);
}
template <bool Bypass>
VELO_INLINE void put_same_order(bf16* to, vec2 x) {
  put_words<Bypass>(to, pairs(x.a, x.b));
}

// Orders streaming stores before later accesses; once for each kernel call that streamed.
VELO_INLINE void fence() {
  _mm_sfence();
}
VELO_INLINE void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
// Prefetches what a loop over both vectors of a step will read 2 KiB later. Streaming stores occupy
// the buffers that cache misses need; with the loads already under way a copy from memory runs at
// 27 instead of 22 GB/s, a conversion to bf16 at 24 instead of 19 (one Granite Rapids core; 1 to 4
// KiB give the same).
template <class T>
VELO_INLINE void look_ahead(const T* p) {
  const char* later = reinterpret_cast<const char*>(p) + 2048;
  prefetch(later);
  if (2 * width * sizeof(T) > 64) prefetch(later + 64);
}

// Sums and maxima across lanes, as a tree of fixed shape.
VELO_INLINE float sum(vec a) {
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}
VELO_INLINE float largest(vec a) {
  return _mm512_reduce_max_ps(a.v);
}

// Base-two exponential in two halves: 2^t = 2^(t - floor t) * 2^(floor t).
VELO_INLINE vec fraction(vec t) {
  return {_mm512_reduce_ps(t.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}
VELO_INLINE vec scale2_floor(vec a, vec t) {
  return {_mm512_scalef_ps(a.v, t.v)};
}

// yes where a equals b, else no; and whether all lanes are equal.
VELO_INLINE vec if_equal(vec a, vec b, vec yes, vec no) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ), no.v, yes.v)};
}
VELO_INLINE vec if_greater(vec a, vec b, vec yes, vec no) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ), no.v, yes.v)};
}
VELO_INLINE bool all_equal(vec a, vec b) {
  return _mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ) == 0xffff;
}

// Whether every lane of a and b has a magnitude of at most `most`. A lane with NaN may count as
// beyond it, since the larger of NaN and a number is NaN in some processors.
VELO_INLINE bool all_within(vec a, vec b, vec most) {
  constexpr int largest_magnitude = 0xb;
  const __m512 larger = _mm512_range_ps(a.v, b.v, largest_magnitude);
  return _mm512_cmp_ps_mask(larger, most.v, _CMP_NLE_UQ) == 0;
}

// Lanes whose byte of n is 0 from yes, the others from no.
VELO_INLINE vec if_zero_bytes(const uint8_t* p, int n, vec yes, vec no) {
  const __m128i bytes = _mm_maskz_loadu_epi8(first(n), p);
  return {_mm512_mask_blend_ps(_mm_test_epi8_mask(bytes, bytes), yes.v, no.v)};
}

// Lanes below n from a, the others from b.
VELO_INLINE vec keep_first(int n, vec a, vec b) {
  const __mmask16 lanes = n >= width ? 0xffff : n <= 0 ? 0 : first(n);
  return {_mm512_mask_blend_ps(lanes, b.v, a.v)};
}

// The largest lane of each of four vectors, side by side.
VELO_INLINE void largest4(vec a, vec b, vec c, vec d, float* to) {
  const __m512 ab = _mm512_max_ps(_mm512_unpacklo_ps(a.v, b.v), _mm512_unpackhi_ps(a.v, b.v));
  const __m512 cd = _mm512_max_ps(_mm512_unpacklo_ps(c.v, d.v), _mm512_unpackhi_ps(c.v, d.v));
  const __m512d x = _mm512_castps_pd(ab), y = _mm512_castps_pd(cd);
  const __m512 all = _mm512_max_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                                   _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
  _mm_storeu_ps(to, _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}

// Words are the 32-bit elements of packed operands: a float or two neighboring bf16. These store
// two vectors side by side, and two vectors as pairs.
VELO_INLINE void store2(float* p, vec a, vec b) {
  store(p, a);
  store(p + width, b);
}
VELO_INLINE void store2(bf16* p, vec a, vec b) {
  _mm512_storeu_si512(p, narrow(a, b));
}
VELO_INLINE void store2(f16* p, vec a, vec b) {
  _mm512_storeu_si512(p, half_precision(a, b));
}
VELO_INLINE void store_pairs(uint32_t* p, vec even, vec odd) {
  _mm512_storeu_si512(p, pairs(even, odd));
}
// Stores two rows of two vectors each as rows, and as pairs of the two rows, one vector of words
// each.
VELO_INLINE void store_rows_and_pairs(bf16* even, bf16* odd, uint32_t* first, uint32_t* second,
                                      const vec (&a)[2], const vec (&b)[2]) {
  store2(even, a[0], a[1]);
  store2(odd, b[0], b[1]);
  store_pairs(first, a[0], b[0]);
  store_pairs(second, a[1], b[1]);
}
// Eight counters of 64 bits for philox.hpp, which has 32-bit words in the lower halves of lanes;
// the upper halves hold anything. `bits` are words side by side, as many as a vec has lanes.
struct longs {
  using vec = avx512::vec;
  using bits = __m512i;
  static constexpr int words = width;
  __m512i v;

  static __attribute__((always_inline)) longs set(uint64_t x) {
    return {_mm512_set1_epi64(static_cast<long long>(x))};
  }
  // first, first + 1, .., in the order that interleave() puts right.
  static __attribute__((always_inline)) longs counters(uint64_t first) {
    return {_mm512_add_epi64(set(first).v, _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7))};
  }
  __attribute__((always_inline)) longs high() const { return {_mm512_srli_epi64(v, 32)}; }
  // The whole product of a word and b.
  static __attribute__((always_inline)) longs multiply(longs a, uint32_t b) {
    return {_mm512_mul_epu32(a.v, set(b).v)};
  }
  static __attribute__((always_inline)) longs mix(longs a, longs b, uint32_t key) {
    const int exclusive_or_of_three = 0x96;
    return {_mm512_ternarylogic_epi32(a.v, b.v, _mm512_set1_epi32(static_cast<int>(key)),
                                      exclusive_or_of_three)};
  }
  // The words a b c d of the first counter, then those of the second, ..
  static __attribute__((always_inline)) void interleave(longs a, longs b, longs c, longs d,
                                                        bits (&to)[2]) {
    const __m512i low = _mm512_mask_blend_epi32(0xaaaa, a.v, _mm512_slli_epi64(b.v, 32));
    const __m512i upper = _mm512_mask_blend_epi32(0xaaaa, c.v, _mm512_slli_epi64(d.v, 32));
    to[0] = _mm512_unpacklo_epi64(low, upper);
    to[1] = _mm512_unpackhi_epi64(low, upper);
  }
  // Words n, n + 1, .. of a and b side by side.
  static __attribute__((always_inline)) bits slide(bits a, bits b, int n) {
    const __m512i iota = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutex2var_epi32(a, _mm512_add_epi32(iota, _mm512_set1_epi32(n)), b);
  }
  // yes where a word is at least `least`, else 0.
  static __attribute__((always_inline)) vec if_at_least(bits a, uint32_t least, float yes) {
    const __mmask16 is = _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(static_cast<int>(least)));
    return {_mm512_maskz_mov_ps(is, _mm512_set1_ps(yes))};
  }
};

// 1 where a lane is not zero, else 0, in the first n bytes.
VELO_INLINE void store_nonzero(uint8_t* p, vec a, int n) {
  const __mmask16 is = _mm512_cmp_ps_mask(a.v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  _mm_mask_storeu_epi8(p, first(n), _mm_maskz_set1_epi8(is, 1));
}

// Vectors of words, for moving them: the first n of a row, or all of them if n is width (twice as
// many halves); missing lanes are zero.
struct words {
  static constexpr int width = 16;
  __m512i v;

  static __mmask32 halves_mask(int n) { return static_cast<__mmask32>((uint64_t{1} << n) - 1); }

  static words zero() { return {_mm512_setzero_si512()}; }
  static words load(const uint32_t* p, int n) {
    return n == width ? words{_mm512_loadu_si512(p)} : words{_mm512_maskz_loadu_epi32(first(n), p)};
  }
  static words load_halves(const uint16_t* p, int n) {
    return n == 2 * width ? words{_mm512_loadu_si512(p)}
                          : words{_mm512_maskz_loadu_epi16(halves_mask(n), p)};
  }
  static __m512i spread(const uint16_t* p, int n) {  // n bf16, one to a word
    const __m256i halves = n == width ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                                      : _mm256_maskz_loadu_epi16(first(n), p);
    return _mm512_cvtepu16_epi32(halves);
  }
  static words widen(const bf16* p, int n) {
    return {_mm512_slli_epi32(spread(reinterpret_cast<const uint16_t*>(p), n), 16)};
  }
  static words widen(const f16* p, int n) {
    return {_mm512_castps_si512((n == width ? avx512::load(p) : avx512::load(p, n)).v)};
  }
  static words pair(const uint16_t* p, const uint16_t* q, int n) {
    const __m512i even = spread(p, n);
    if (q == nullptr) return {even};
    return {_mm512_or_si512(even, _mm512_slli_epi32(spread(q, n), 16))};
  }
  void store(uint32_t* p) const { _mm512_storeu_si512(p, v); }
  void store_eights(uint32_t* p, int64_t stride) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + stride), _mm512_extracti64x4_epi64(v, 1));
  }

  static void turn(words (&r)[width]) {
    __m512i t[width];
#pragma GCC unroll 8
    for (int i = 0; i < width; i += 2) {  // words of neighboring rows side by side
      t[i] = _mm512_unpacklo_epi32(r[i].v, r[i + 1].v);
      t[i + 1] = _mm512_unpackhi_epi32(r[i].v, r[i + 1].v);
    }
    __m512i q[width];
#pragma GCC unroll 4
    for (int i = 0; i < width; i += 4) {  // four rows of one column in each quarter
      q[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      q[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      q[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      q[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {  // quarters to their columns
      const __m512i low = _mm512_shuffle_i32x4(q[c], q[4 + c], 0x88);
      const __m512i high = _mm512_shuffle_i32x4(q[8 + c], q[12 + c], 0x88);
      const __m512i low_odd = _mm512_shuffle_i32x4(q[c], q[4 + c], 0xdd);
      const __m512i high_odd = _mm512_shuffle_i32x4(q[8 + c], q[12 + c], 0xdd);
      r[c].v = _mm512_shuffle_i32x4(low, high, 0x88);
      r[8 + c].v = _mm512_shuffle_i32x4(low, high, 0xdd);
      r[4 + c].v = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
      r[12 + c].v = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
    }
  }

  // Transposes columns 0 to 7 in the lower halves of vectors, 8 to 15 in the upper halves.
  static void store_eight(const words (&r)[8], uint32_t* p) {
    __m512i t[8], q[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {  // words of neighboring rows side by side
      t[i] = _mm512_unpacklo_epi32(r[i].v, r[i + 1].v);
      t[i + 1] = _mm512_unpackhi_epi32(r[i].v, r[i + 1].v);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {  // four rows of one column in each quarter
      q[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
      q[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
      q[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
      q[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      words{_mm512_permutex2var_epi64(q[c], even, q[4 + c])}.store_eights(p + 8 * c, 64);
      words{_mm512_permutex2var_epi64(q[c], odd, q[4 + c])}.store_eights(p + 32 + 8 * c, 64);
    }
  }
};

// Rows and vectors of a block of sums that fits in the registers beside a row of vectors.
inline constexpr int sum_rows = 8, sum_vectors = 3;

using dot_operand = void;  // nothing multiplies pairs of bf16 here

}  // namespace velo::simd::avx512
