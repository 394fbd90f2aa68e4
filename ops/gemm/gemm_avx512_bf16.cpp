// The engine's kernels on AVX-512 with the dot product of bf16.
#include "core/simd/avx512_bf16.hpp"
#include "ops/gemm/gemm_kernels.hpp"

namespace velo::ops {
namespace {

namespace simd = velo::simd::avx512_bf16;
#include "ops/gemm/gemm_kernels.inl"

}  // namespace

extern const gemm_kernels gemm_kernels_avx512_bf16 = kernels_with(nullptr);

}  // namespace velo::ops
