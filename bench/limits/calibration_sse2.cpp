// The memory patterns in 128-bit vectors, which every x86-64 has.
#include <immintrin.h>

#include "bench/limits/calibration_loops.hpp"

namespace velo::bench {
namespace {

struct lane {
  using reg = __m128;
  static constexpr int width = 4;
  static reg load(const float* p) { return _mm_load_ps(p); }
  static void store(float* p, reg v) { _mm_store_ps(p, v); }
  static void stream(float* p, reg v) { _mm_stream_ps(p, v); }
  static reg add(reg a, reg b) { return _mm_add_ps(a, b); }
  static reg mul(reg a, reg b) { return _mm_mul_ps(a, b); }
  static reg set1(float v) { return _mm_set1_ps(v); }
};

#include "bench/limits/calibration_patterns.inl"

}  // namespace

const pattern_table patterns_sse2 = table;

}  // namespace velo::bench
