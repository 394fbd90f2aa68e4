// The engine's kernels on AVX-512.
#include "core/simd/avx512.hpp"
#include "ops/gemm/gemm_kernels.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx512;
#include "ops/gemm/gemm_kernels.inl"

}  // namespace

extern const gemm_kernels gemm_kernels_avx512 = kernels_with(nullptr);

}  // namespace velo::ops
