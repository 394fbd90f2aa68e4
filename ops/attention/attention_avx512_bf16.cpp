// Attention's vector work for AVX-512 BF16: the algorithms of attention_kernels.inl with the
// processor's own conversion.
#include "core/simd/avx512_bf16.hpp"
#include "ops/attention/attention_kernels.hpp"

namespace velo::ops {
namespace {

namespace v = simd::avx512_bf16;
using simd::bf16;
#include "ops/attention/attention_kernels.inl"

}  // namespace

extern const attention_kernels attention_kernels_avx512_bf16 = all_kernels();

}  // namespace velo::ops
