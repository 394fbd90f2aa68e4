// Root-mean-square normalization and its gradient: the operator to read first, whose shape all
// others repeat.
//
//   y      = x * rstd * gamma,  rstd = 1 / sqrt(mean(x^2) + epsilon)   over rows of n elements
//   dx     = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))
//   dgamma = sum over rows of dy * x * rstd
//
// x, y, dy, dx: float32, bfloat16 or float16, [.., n] compact; gamma: float32 or the dtype of x;
// arithmetic in float32. A slice is a run of whole rows; a kernel treats one slice, and slices do
// not depend on the number of threads. Bytes: forward one read and one write of x, backward two
// reads and one write. Bound: memory, from rows of 1 KiB up.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct rms_norm_slice {
  const T* x;
  const float* gamma;  // n
  T* y;
  float* rstd;  // one a row, or nullptr
  int64_t rows;
  int64_t n;
  float epsilon;
  bool bypass;  // write y around the cache
};

template <class T>
struct rms_norm_backward_slice {
  const T* dy;
  const T* x;
  const float* gamma;  // n
  const float* rstd;   // one a row
  T* dx;
  float* dgamma;  // n partial sums to add to, or nullptr
  int64_t rows;
  int64_t n;
  bool bypass;  // write dx around the cache
};

// A block of columns of dgamma: the sum of the slices' partial rows.
struct rms_norm_gain_columns {
  const float* partial;  // `rows` rows, `stride` elements apart
  int64_t rows;
  int64_t stride;
  float* dgamma;
  int64_t n;
  bool accumulate;  // add to dgamma
};

struct rms_norm_kernels {
  of_each_dtype<rms_norm_slice> forward;
  of_each_dtype<rms_norm_backward_slice> backward;
  void (*gain)(const rms_norm_gain_columns&);
};
extern const kernel_list rms_norm_kernel_list;

namespace reference {
extern const rms_norm_kernels rms_norm;  // also for rows whose squares exceed float32
}

}  // namespace velo::ops
