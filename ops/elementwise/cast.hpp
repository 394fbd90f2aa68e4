// y = x in another element type: float32 to bfloat16 (nearest even, NaN stays NaN) and back
// (exact).
//
// Any shape, compact. A slice is a run of elements. Bytes: one read of x, one write of y. Bound:
// memory.
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

struct cast_kernels {
  void (*narrow)(const cast_slice<float, simd::bf16>&);
  void (*widen)(const cast_slice<simd::bf16, float>&);
};
extern const kernel_list cast_kernel_list;

}  // namespace velo::ops
