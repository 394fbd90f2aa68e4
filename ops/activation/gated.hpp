// The gated activations y = f(gate) * up and their gradients; gate and up are the two halves of x
// along one dimension, f is an activation function (function.hpp).
//
//   dgate = dy * up * f'(gate),  dup = dy * f(gate)
//
// float32, bfloat16 or float16, compact, arithmetic in float32. Seen from the split dimension, x is
// rows of gate then up; a slice is a run of elements within one row. Bytes: forward one read of x
// and half a write, backward 1.5 reads and one write. Bound: memory, and for 16-bit elements in
// cache the function (exp: 9 instructions a vector).
#pragma once

#include <stdint.h>

#include "ops/activation/function.hpp"
#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct gated_slice {
  const T* gate;
  const T* up;
  T* y;
  int64_t n;
  bool bypass;  // write y around the cache
};

template <class T>
struct gated_backward_slice {
  const T* dy;
  const T* gate;
  const T* up;
  T* dgate;
  T* dup;
  int64_t n;
  bool bypass;  // write dgate and dup around the cache
};

// Sums of a gated product (ops/gemm/epilogue.hpp) and where its results go, all in one type.
struct gated_block {
  const float *gate, *factor;  // rows `ld` apart
  int64_t ld;
  const float *gate_bias, *factor_bias;  // one a column, or both null
  void* y;                               // f(gate) * factor, rows ldy elements apart
  int64_t ldy;
  void *gate_before, *factor_before;  // what the gradient needs, or both null
  int64_t ld_before;
  int rows, columns;
};

// One kernel for each activation_function; of sums one for each dtype, and for silu alone.
struct gated_kernels {
  of_each_dtype<gated_slice> forward[activation_count];
  of_each_dtype<gated_backward_slice> backward[activation_count];
  void (*silu_sums[3])(const gated_block&);  // float32, bfloat16, float16
};
extern const kernel_list gated_kernel_list;

}  // namespace velo::ops
