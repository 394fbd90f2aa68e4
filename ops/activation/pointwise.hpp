// The activations y = f(x) element by element and their gradients dx = dy * f'(x); f is an
// activation function (function.hpp).
//
// float32, bfloat16 or float16, any shape, compact, arithmetic in float32. A slice is a run of
// elements. Bytes: forward one read and one write, backward two reads and one write. Bound: memory,
// and in cache the function.
#pragma once

#include <stdint.h>

#include "ops/activation/function.hpp"
#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct pointwise_slice {
  const T* x;
  T* y;
  int64_t n;
  bool bypass;  // write y around the cache
};

template <class T>
struct pointwise_backward_slice {
  const T* dy;
  const T* x;
  T* dx;
  int64_t n;
  bool bypass;  // write dx around the cache
};

// One kernel for each activation_function.
struct pointwise_kernels {
  of_each_dtype<pointwise_slice> forward[activation_count];
  of_each_dtype<pointwise_backward_slice> backward[activation_count];
};
extern const kernel_list pointwise_kernel_list;

}  // namespace velo::ops
