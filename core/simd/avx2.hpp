// Eight floats at a time (AVX2 + FMA): the vector type kernels are written over, see scalar.hpp for
// the contract.
//
// Only files compiled for AVX2 may include this. Tails go through a mask (float) or a small copy
// (bf16). What valgrind runs.
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
VELO_INLINE vec round(vec a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
// a * 2^n for an integral n in [-252, 254], in two exact halves so that the ends saturate to 0 and
// infinity.
VELO_INLINE __m256 power2(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
VELO_INLINE vec scale2(vec a, vec n) {
  const __m256i whole = _mm256_cvtps_epi32(n.v);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  return {_mm256_mul_ps(_mm256_mul_ps(a.v, power2(half)), power2(_mm256_sub_epi32(whole, half)))};
}
// Neighbors exchanged: lanes 1 0 3 2 ..
VELO_INLINE vec swap_pairs(vec a) {
  return {_mm256_permute_ps(a.v, 0xb1)};
}
VELO_INLINE vec if_nan(vec a, vec yes, vec no) {
  return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q))};
}

VELO_INLINE vec if_less(vec a, vec b, vec yes, vec no) {
  return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ))};
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
VELO_INLINE __m128i narrow(vec a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
  const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(upper, upper), 0x08);
  return _mm256_castsi256_si128(packed);
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

template <bool Bypass, class T>
VELO_INLINE void put(T* to, vec value) {
  if (Bypass) {
    stream(to, value);
  } else {
    store(to, value);
  }
}

VELO_INLINE void fence() {
  _mm_sfence();
}
VELO_INLINE void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
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

}  // namespace velo::simd::avx2
