// The engine's kernels on AVX2.
#include "core/simd/avx2.hpp"
#include "ops/gemm/gemm_kernels.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx2;
#include "ops/gemm/gemm_kernels.inl"

}  // namespace

extern const gemm_kernels gemm_kernels_avx2 = kernels_with(nullptr);

}  // namespace velo::ops
