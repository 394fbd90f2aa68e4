// Attention's vector work for AVX-512: the algorithms of attention_kernels.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/attention/attention_kernels.hpp"

namespace velo::ops {
namespace {

namespace v = simd::avx512;
using simd::bf16;
#include "ops/attention/attention_kernels.inl"

}  // namespace

extern const attention_kernels attention_kernels_avx512 = all_kernels();

}  // namespace velo::ops
