// The gated activation y = silu(gate) * up and its gradient; gate and up are the two halves of x
// along one dimension.
//
//   y = gate / (1 + exp(-gate)) * up
//   dgate = dy * up * s * (1 + gate * (1 - s)),  dup = dy * gate * s,  s = 1 / (1 + exp(-gate))
//
// float32, bfloat16 or float16, compact, arithmetic in float32. Seen from the split dimension, x is
// rows of gate then up; a slice is a run of elements within one row. Bytes: forward one read of x
// and half a write, backward 1.5 reads and one write. Bound: memory, and for 16-bit elements in
// cache exp (11 instructions a vector).
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct swiglu_slice {
  const T* gate;
  const T* up;
  T* y;
  int64_t n;
  bool bypass;  // write y around the cache
};

template <class T>
struct swiglu_backward_slice {
  const T* dy;
  const T* gate;
  const T* up;
  T* dgate;
  T* dup;
  int64_t n;
  bool bypass;  // write dgate and dup around the cache
};

struct swiglu_kernels {
  of_each_dtype<swiglu_slice> forward;
  of_each_dtype<swiglu_backward_slice> backward;
};
extern const kernel_list swiglu_kernel_list;

}  // namespace velo::ops
