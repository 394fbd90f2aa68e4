// The micro-kernel on AVX-512: 8 x 3 vectors of sums.
#include "core/simd/avx512.hpp"
#include "ops/gemm/micro_kernel.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx512;

constexpr int most_rows = 8, most_vectors = 3;

#include "ops/gemm/micro_kernel_f32.inl"

}  // namespace

void micro_f32_avx512(const micro_args& x) {
  multiply_micro_panel(x);
}

}  // namespace velo::ops
