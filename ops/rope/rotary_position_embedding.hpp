// Rotary position embedding and its gradient: pairs of features turned by an angle that grows with
// the position.
//
//   y  = x * cos + rotate(x) * sin            half: pair (i, i + R/2), rotate = [-x2, x1]
//   dx = dy * cos + rotate^T(dy * sin)        interleaved: pair (2i, 2i + 1), rotate = (-x1, x0)
//   dcos = sum dy * x,  dsin = sum dy * rotate(x)   over the dimensions in which cos was broadcast
//
// The first R of D features turn, the rest pass through. float32, bfloat16 or float16, rows of unit
// inner stride; tables are widened to float32 before the kernel runs. A slice is a run of rows
// whose table rows advance by a constant (0 when they share one). Bytes: one read and one write of
// x. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct rotary_slice {
  const T* x;
  T* y;
  const float* cos;
  const float* sin;
  int64_t rows;
  int64_t x_stride;  // elements between rows
  int64_t y_stride;
  int64_t table_stride;  // 0 when all rows share one table row
  int64_t width;         // D
  int64_t rotated;       // R
  bool interleaved;
  bool inverse;  // the gradient: turns back
  bool bypass;   // write y around the cache
};

// Adds one row's share to the gradient of its table row.
template <class T>
struct rotary_table_row {
  const T* dy;
  const T* x;
  float* dcos;
  float* dsin;
  int64_t rotated;
  bool interleaved;
};

struct rotary_position_embedding_kernels {
  of_each_dtype<rotary_slice> rotate;
  of_each_dtype<rotary_table_row> add_to_tables;
};
extern const kernel_list rotary_position_embedding_kernel_list;

}  // namespace velo::ops
