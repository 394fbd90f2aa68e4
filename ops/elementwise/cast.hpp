// y = x in another element type of float32, bfloat16 and float16: nearest even, NaN stays NaN.
//
// Any shape, compact. Widening to float32 is exact; between the two types of 16 bits an element is
// widened, then rounded once. A slice is a run of elements. Bytes: one read of x, one write of y.
// Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class From, class To>
struct cast_slice {
  const From* x;
  To* y;
  int64_t n;
  bool bypass;  // write y around the cache
};

template <class From, class To>
using cast_kernel = void (*)(const cast_slice<From, To>&);

struct cast_kernels {
  cast_kernel<float, simd::bf16> f32_to_bf16;
  cast_kernel<float, simd::f16> f32_to_f16;
  cast_kernel<simd::bf16, float> bf16_to_f32;
  cast_kernel<simd::bf16, simd::f16> bf16_to_f16;
  cast_kernel<simd::f16, float> f16_to_f32;
  cast_kernel<simd::f16, simd::bf16> f16_to_bf16;

  cast_kernel<float, simd::bf16> of(float, simd::bf16) const { return f32_to_bf16; }
  cast_kernel<float, simd::f16> of(float, simd::f16) const { return f32_to_f16; }
  cast_kernel<simd::bf16, float> of(simd::bf16, float) const { return bf16_to_f32; }
  cast_kernel<simd::bf16, simd::f16> of(simd::bf16, simd::f16) const { return bf16_to_f16; }
  cast_kernel<simd::f16, float> of(simd::f16, float) const { return f16_to_f32; }
  cast_kernel<simd::f16, simd::bf16> of(simd::f16, simd::bf16) const { return f16_to_bf16; }
};
extern const kernel_list cast_kernel_list;

}  // namespace velo::ops
