// avx512_bf16.hpp for integers of 8 and 4 bits: avx512_bytes.hpp with the dot products of VNNI.
#pragma once

#include "core/simd/avx512_bf16.hpp"
#include "core/simd/avx512_bytes.hpp"

namespace velo::simd::avx512_bf16 {

VELO_INLINE void store(int8_t* p, vec a, int n) {
  avx512::store(p, a, n);
}

// Sums in int32 of products of quads of bytes, those of the left side unsigned.
struct ints {
  using words = byte_quads;
  static constexpr uint8_t zero_byte = 128;
  __m512i v;

  static __attribute__((always_inline)) ints zero() { return {_mm512_setzero_si512()}; }
  static __attribute__((always_inline)) ints load(const void* p) { return {_mm512_loadu_si512(p)}; }
  __attribute__((always_inline)) void store(void* p) const { _mm512_storeu_si512(p, v); }
  static __attribute__((always_inline)) ints broadcast(const void* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof word);
    return {_mm512_set1_epi32(word)};
  }
  static __attribute__((always_inline)) ints dot(ints sums, ints a, ints b) {
    return {_mm512_dpbusd_epi32(sums.v, a.v, b.v)};
  }
  __attribute__((always_inline)) ints plus(ints b) const { return {_mm512_add_epi32(v, b.v)}; }
  __attribute__((always_inline)) ints negative() const { return {_mm512_sub_epi32(zero().v, v)}; }
  __attribute__((always_inline)) vec to_floats() const { return {_mm512_cvtepi32_ps(v)}; }
};

}  // namespace velo::simd::avx512_bf16
