// avx512.hpp with the processor's own conversion to bf16, for kernels that convert in their inner
// loop.
//
// The instruction rounds to nearest even as software does, but treats denormals as zero. Only files
// compiled for AVX-512 BF16 may include this.
#pragma once

#include "core/simd/avx512.hpp"

namespace velo::simd::avx512_bf16 {

using namespace avx512;

template <class T>
VELO_INLINE void store(T* p, vec a) {
  avx512::store(p, a);
}
template <class T>
VELO_INLINE void store(T* p, vec a, int n) {
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
template <class T>
VELO_INLINE void store2(T* p, vec a, vec b) {
  avx512::store2(p, a, b);
}
VELO_INLINE void store2(bf16* p, vec a, vec b) {
  _mm512_storeu_si512(p, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v)));
}
// The conversion instruction flushes denormals. Vectors with a denormal are therefore rounded in
// software, so that the bits equal those of code without this instruction.
template <class T>
VELO_INLINE void store_exact(T* p, vec a) {
  avx512::store(p, a);
}
VELO_INLINE bool has_denormal(vec a) {
  constexpr int denormal = 0x20;
  return __builtin_expect(_mm512_fpclass_ps_mask(a.v, denormal) != 0, 0);
}
VELO_INLINE void store_exact(bf16* p, vec a) {
  if (has_denormal(a)) {
    avx512::store(p, a);
  } else {
    avx512_bf16::store(p, a);
  }
}
template <class T>
VELO_INLINE void stream(T* p, vec a) {
  avx512::stream(p, a);
}
VELO_INLINE void stream(bf16* p, vec a) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), converted(a));
}
template <class T>
VELO_INLINE void stream_exact(T* p, vec a) {
  avx512::stream(p, a);
}
VELO_INLINE void stream_exact(bf16* p, vec a) {
  if (has_denormal(a)) {
    avx512::stream(p, a);
  } else {
    avx512_bf16::stream(p, a);
  }
}
template <bool Bypass, class T>
VELO_INLINE void put2(T* to, vec a, vec b) {
  avx512::put2<Bypass>(to, a, b);
}
template <bool Bypass>
VELO_INLINE void put2(bf16* to, vec a, vec b) {
  put_words<Bypass>(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v)));
}
VELO_INLINE void store_rows_and_pairs(bf16* even, bf16* odd, uint32_t* pairs0, uint32_t* pairs1,
                                      const vec (&a)[2], const vec (&b)[2]) {
  const auto first = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(a[1].v, a[0].v));
  const auto second = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b[1].v, b[0].v));
  _mm512_storeu_si512(even, first);
  _mm512_storeu_si512(odd, second);
  // Lane 2i from the first row, lane 2i + 1 from the second.
  const __m512i lanes = _mm512_add_epi32(
      _mm512_set1_epi32(0x00200000),
      _mm512_mullo_epi32(_mm512_set1_epi32(0x00010001),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
  const __m512i upper = _mm512_add_epi32(lanes, _mm512_set1_epi32(0x00100010));
  _mm512_storeu_si512(pairs0, _mm512_permutex2var_epi16(first, lanes, second));
  _mm512_storeu_si512(pairs1, _mm512_permutex2var_epi16(first, upper, second));
}

// Pairs of neighboring bf16, each multiplied and added to a float.
struct dot_operand {
  __m512i v;

  static dot_operand load(const uint32_t* p) { return {_mm512_loadu_si512(p)}; }
  static dot_operand broadcast(const uint32_t* p) {  // the pair need not lie on a word
    int word;
    __builtin_memcpy(&word, p, sizeof word);
    return {_mm512_set1_epi32(word)};
  }
  static vec multiply_add(vec sums, dot_operand b, dot_operand a) {
    return {
        _mm512_dpbf16_ps(sums.v, reinterpret_cast<__m512bh>(b.v), reinterpret_cast<__m512bh>(a.v))};
  }
};

}  // namespace velo::simd::avx512_bf16
