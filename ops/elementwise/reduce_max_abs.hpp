// The largest magnitude of a tensor, of its rows or of its columns: what quantizers scale by.
//
//   y = max(abs(x));  0 of no elements, NaN where one is NaN
//
// float32, bfloat16 or float16, exact. A slice is a run of elements of one row, or a block of
// columns of some rows; a maximum does not depend on how it is divided. Bytes: one read of x.
// Bound: memory.
#pragma once

#include <stdint.h>

#include "core/simd/bytes.hpp"
#include "ops/operator/kernels.hpp"

namespace velo::ops {

// The result is the largest magnitude of a run.
template <class T>
struct max_abs_run {
  const T* x;
  int64_t n;
};

// Raises the largest magnitudes of columns to those of a row.
template <class T>
struct max_abs_row {
  const T* x;
  float* largest;  // n
  int64_t n;
};

struct reduce_max_abs_kernels {
  of_each_dtype<max_abs_run, float> run;
  of_each_dtype<max_abs_row> columns;
};
extern const kernel_list reduce_max_abs_kernel_list;

}  // namespace velo::ops
