// Attention's vector work in bf16 with the processor's own conversion: the algorithms of
// attention.inl once more.
#include "core/simd/avx512_bf16.hpp"
#include "ops/attention/attention_kernels.hpp"

namespace velo::ops::avx512_bf16 {
namespace {

namespace v = simd::avx512_bf16;
using simd::bf16;
#include "ops/attention/attention.inl"

constexpr attention_kernels bf16_kernels = kernels_of<bf16>();

}  // namespace

const attention_kernels& attention_bf16() {
  return bf16_kernels;
}

}  // namespace velo::ops::avx512_bf16
