// y += alpha * x, element by element, in any two of float32, bfloat16 and float16: gradients into a
// sum of another type.
//
// Any shape, compact; one multiply-add in float32, rounded once. A slice is a run of elements.
// Bytes: one read of x, one read and one write of y. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class From, class To>
struct accumulate_slice {
  const From* x;
  To* y;
  int64_t n;
  float alpha;
};

// The kernel from one type to the three.
template <class From>
struct accumulate_from {
  void (*to_f32)(const accumulate_slice<From, float>&);
  void (*to_bf16)(const accumulate_slice<From, simd::bf16>&);
  void (*to_f16)(const accumulate_slice<From, simd::f16>&);

  void operator()(const accumulate_slice<From, float>& s) const { to_f32(s); }
  void operator()(const accumulate_slice<From, simd::bf16>& s) const { to_bf16(s); }
  void operator()(const accumulate_slice<From, simd::f16>& s) const { to_f16(s); }
};

struct accumulate_kernels {
  accumulate_from<float> from_f32;
  accumulate_from<simd::bf16> from_bf16;
  accumulate_from<simd::f16> from_f16;

  const accumulate_from<float>& of(float) const { return from_f32; }
  const accumulate_from<simd::bf16>& of(simd::bf16) const { return from_bf16; }
  const accumulate_from<simd::f16>& of(simd::f16) const { return from_f16; }
};
extern const kernel_list accumulate_kernel_list;

}  // namespace velo::ops
