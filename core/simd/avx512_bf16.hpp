// avx512.hpp with the processor's own conversion to bf16 where kernels convert in their inner loop.
//
// The instruction rounds to nearest even like the plain code, but takes denormals for zero. Only
// files compiled for AVX-512 BF16 may include this.
#pragma once

#include "core/simd/avx512.hpp"

namespace velo::simd::avx512_bf16 {

using namespace avx512;

VELO_INLINE void store(float* p, vec a) {
  avx512::store(p, a);
}
VELO_INLINE void store(float* p, vec a, int n) {
  avx512::store(p, a, n);
}
VELO_INLINE __m256i converted(vec a) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a.v));
}
VELO_INLINE void store(bf16* p, vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), converted(a));
}
VELO_INLINE void store(bf16* p, vec a, int n) {
  _mm256_mask_storeu_epi16(p, first(n), converted(a));
}
VELO_INLINE void store2(float* p, vec a, vec b) {
  avx512::store2(p, a, b);
}
VELO_INLINE void store2(bf16* p, vec a, vec b) {
  _mm512_storeu_si512(p, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v)));
}
// even in the lower, odd in the upper half of each word: each half comes from a conversion of its
// own, which costs less than interleaving one joint result.
VELO_INLINE void store_pairs(bf16* p, vec even, vec odd) {
  const __m512i low = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(even.v)));
  const __m512i high = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(odd.v)));
  _mm512_storeu_si512(p, _mm512_or_si512(_mm512_slli_epi32(high, 16), low));
}

}  // namespace velo::simd::avx512_bf16
