// The micro-kernel on AVX2: 4 x 3 vectors of sums, two blocks deep and two wide.
#include "core/simd/avx2.hpp"
#include "ops/gemm/micro_kernel.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx2;

constexpr int most_rows = 4, most_vectors = 3;

#include "ops/gemm/micro_kernel_f32.inl"

}  // namespace

void micro_f32_avx2(const micro_args& x) {
  multiply_micro_panel(x);
}

}  // namespace velo::ops
