// The memory patterns in 256-bit vectors.
#include <immintrin.h>

#include "bench/limits/calibration_loops.hpp"

namespace velo::bench {
namespace {

struct lane {
  using reg = __m256;
  static constexpr int width = 8;
  static reg load(const float* p) { return _mm256_load_ps(p); }
  static void store(float* p, reg v) { _mm256_store_ps(p, v); }
  static void stream(float* p, reg v) { _mm256_stream_ps(p, v); }
  static reg add(reg a, reg b) { return _mm256_add_ps(a, b); }
  static reg mul(reg a, reg b) { return _mm256_mul_ps(a, b); }
  static reg set1(float v) { return _mm256_set1_ps(v); }
};

#include "bench/limits/calibration_patterns.inl"

}  // namespace

const pattern_table patterns_avx2 = table;

}  // namespace velo::bench
