// What the norms share: slices of rows and the kernels of rms_norm and of layer_norm, which is
// rms_norm of rows from which their mean was subtracted.
//
// norm.inl has the loops, norm_ref.hpp the reference, norm_rows.hpp cuts rows into slices. No mean:
// rms_norm. The fused norms (dropout_add_norm.hpp) run the same loops from and to a row of floats.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// Rows of X become rows of T.
template <class X, class T>
struct norm_rows {
  const X* x;
  const float* gamma;  // n
  const float* beta;   // n; layer_norm only
  T* y;
  float* mean;  // one a row, or nullptr; layer_norm only
  float* rstd;  // one a row, or nullptr
  int64_t rows;
  int64_t n;
  float epsilon;
  bool bypass;  // write y around the cache
  // One a row, that of an earlier call: it is not computed again; nullptr: it is. rms_norm only.
  const float* known_rstd = nullptr;
};

// The gradient of rows of X, given that of rows of T, as rows of D.
template <class T, class X, class D>
struct norm_gradient_rows {
  const T* dy;
  const X* x;
  const float* gamma;  // n
  const float* mean;   // one a row; layer_norm only
  const float* rstd;   // one a row
  D* dx;
  float* dgamma;  // n partial sums to add to, or nullptr
  float* dbeta;   // the same; layer_norm only, and beside dgamma
  int64_t rows;
  int64_t n;
  bool bypass;  // write dx around the cache
};

// A block of columns of a gradient summed over rows: the sum of the slices' partial rows.
struct norm_columns {
  const float* partial;  // `rows` rows, `stride` elements apart
  int64_t rows;
  int64_t stride;
  float* sum;
  int64_t n;
  bool accumulate;  // add to sum
};

template <class T>
using norm_slice = norm_rows<T, T>;
template <class T>
using norm_backward_slice = norm_gradient_rows<T, T, T>;

struct norm_kernels {
  of_each_dtype<norm_slice> forward;
  of_each_dtype<norm_backward_slice> backward;
  void (*columns)(const norm_columns&);
};

}  // namespace velo::ops
