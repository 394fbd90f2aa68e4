// y = a + b, element by element: residual connections.
//
// float32, bfloat16 or float16, any shape, compact; the sum is rounded once. A slice is a run of
// elements. Bytes: two reads and one write of y. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct add_slice {
  const T* a;
  const T* b;
  T* y;
  int64_t n;
  bool bypass;  // write y around the cache
};

struct add_kernels {
  of_each_dtype<add_slice> add;
};
extern const kernel_list add_kernel_list;

}  // namespace velo::ops
