// The norm of all gradients together, and the factor that clips it.
//
//   sum_of_squares (+)= sum x^2,  norm = sqrt(sum_of_squares)
//   clip = min(1, max_norm / (norm + 1e-6))
//
// float32, bfloat16 or float16, of one tensor or of a list. A slice is 4096 elements. Blocks of it
// are summed in float32 in a fixed tree, in units that keep their squares normal; blocks and slices
// are added in double in order, so the result does not depend on threads. Bytes: one read of x.
// Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct square_slice {
  const T* x;
  int64_t n;
};

struct global_norm_kernels {
  of_each_dtype<square_slice, double> sum_of_squares;
};
extern const kernel_list global_norm_kernel_list;

}  // namespace velo::ops
