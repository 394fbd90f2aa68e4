// Attention's vector work for AVX2: the algorithms of attention_kernels.inl over eight floats.
#include "core/simd/avx2.hpp"
#include "ops/attention/attention_kernels.hpp"

namespace velo::ops {
namespace {

namespace v = simd::avx2;
using simd::bf16;
#include "ops/attention/attention_kernels.inl"

}  // namespace

extern const attention_kernels attention_kernels_avx2 = all_kernels();

}  // namespace velo::ops
