// Attention's vector work for AVX-512: the algorithms of attention.inl over sixteen floats.
#include "core/simd/avx512.hpp"
#include "ops/attention/attention_kernels.hpp"

namespace velo::ops::avx512 {
namespace {

namespace v = simd::avx512;
using simd::bf16;
#include "ops/attention/attention.inl"

constexpr attention_kernels f32_kernels = kernels_of<float>();
constexpr attention_kernels bf16_kernels = kernels_of<bf16>();

}  // namespace

const attention_kernels& attention_f32() {
  return f32_kernels;
}
const attention_kernels& attention_bf16() {
  return bf16_kernels;
}

}  // namespace velo::ops::avx512
