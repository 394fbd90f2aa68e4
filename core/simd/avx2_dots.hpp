// What products with rows of a cache need beside avx2.hpp: sums of lanes side by side.
#pragma once

#include "core/simd/avx2_bytes.hpp"

namespace velo::simd::avx2 {

// The sum of the lanes of each of four vectors.
VELO_INLINE void sum4(vec a, vec b, vec c, vec d, float* to) {
  const __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a.v, b.v), _mm256_unpackhi_ps(a.v, b.v));
  const __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c.v, d.v), _mm256_unpackhi_ps(c.v, d.v));
  const __m256 all =
      _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}

// Into the second cache: the first has fewer places for lines under way.
VELO_INLINE void prefetch_far(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}

}  // namespace velo::simd::avx2
