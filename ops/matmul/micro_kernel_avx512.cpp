// The micro-kernel on AVX-512: 8 x 3 vectors of sums.
#include "core/simd/avx512.hpp"
#include "ops/matmul/micro_kernel.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx512;

constexpr int most_rows = 8, most_vectors = 3;

struct operand {
  simd::vec v;

  static operand load(const uint32_t* p) { return {simd::load(reinterpret_cast<const float*>(p))}; }
  static operand broadcast(const uint32_t* p) {
    return {simd::set(*reinterpret_cast<const float*>(p))};
  }
};

VELO_INLINE simd::vec multiply_add(simd::vec sums, operand b, operand a) {
  return simd::fma(a.v, b.v, sums);
}

#include "ops/matmul/micro_kernel.inl"

}  // namespace

void micro_f32_avx512(const micro_args& x) {
  multiply_micro_panel(x);
}

}  // namespace velo::ops
