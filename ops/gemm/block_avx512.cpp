// velo's own block product for AVX-512: 8 x 3 vectors of sixteen, 24 sums and a row of B in
// thirty-two registers.
#include <immintrin.h>

#include "ops/gemm/block_kernels.hpp"

namespace velo::ops {
namespace {

struct vec {
  static constexpr int width = 16;
  __m512 v;

  static vec zero() { return {_mm512_setzero_ps()}; }
  static vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static vec broadcast(const float* p) { return {_mm512_set1_ps(*p)}; }
  static vec fma(vec a, vec b, vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static vec even(const std::uint32_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
  }
  static vec odd(const std::uint32_t* p) {
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), high))};
  }
  static vec widen(const std::uint16_t* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
};

constexpr int most_rows = 8, most_columns = 3;

#include "ops/gemm/block_portable.inl"

}  // namespace

void portable_block_avx512(const block_shape& shape, const void* a, const void* b, float* c) {
  block_any(shape, a, b, c);
}

}  // namespace velo::ops
