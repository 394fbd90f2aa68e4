// velo's own block product for AVX2 and FMA: 6 x 2 vectors of eight, twelve sums in sixteen
// registers.
#include <immintrin.h>

#include "ops/gemm/block_kernels.hpp"

namespace velo::ops {
namespace {

struct vec {
  static constexpr int width = 8;
  __m256 v;

  static vec zero() { return {_mm256_setzero_ps()}; }
  static vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static vec broadcast(const float* p) { return {_mm256_broadcast_ss(p)}; }
  static vec fma(vec a, vec b, vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  static __m256i pairs(const std::uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static vec even(const std::uint32_t* p) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(pairs(p), 16))};
  }
  static vec odd(const std::uint32_t* p) {
    const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm256_castsi256_ps(_mm256_and_si256(pairs(p), high))};
  }
  static vec widen(const std::uint16_t* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))};
  }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
};

constexpr int most_rows = 6, most_columns = 2;

#include "ops/gemm/block_portable.inl"

}  // namespace

void portable_block_avx2(const block_shape& shape, const void* a, const void* b, float* c) {
  block_any(shape, a, b, c);
}

}  // namespace velo::ops
