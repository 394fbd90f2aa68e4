// What the norms share: slices of rows and the kernels of rms_norm and of layer_norm, which is
// rms_norm of rows from which their mean was subtracted.
//
// norm.inl has the loops, norm_ref.hpp the reference, norm_rows.hpp cuts rows into slices. No mean:
// rms_norm. The fused norms (dropout_add_norm.hpp) run the same loops from and to a row of floats.
// Ranks that share rows (sched/parallel/tensor/parallel_norm.cpp) sum their parts of a row first,
// and give a slice the numbers of the whole row.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// The mean (layer_norm only) and rstd of a row.
struct row_statistics {
  double mean, rstd;
};

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
  bool bypass;                            // write y around the cache
  const row_statistics* known = nullptr;  // one a row; nullptr: they are computed
};

// The sums over a row of dy * gamma * (x - mean) and, layer_norm only, of dy * gamma; or the means,
// where a comment says so.
struct row_gradient_terms {
  double dot, sum;
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
  bool bypass;                                // write dx around the cache
  const row_gradient_terms* known = nullptr;  // means, one a row; nullptr: they are computed
};

// The sums of parts of rows, from which the statistics of the whole rows follow: of squares or, in
// a layer_norm, of squares around the part's own mean, then of the elements.
template <class T>
struct norm_sums {
  const T* x;
  double* sums;  // one a row, or two (layer_norm)
  int64_t rows;
  int64_t n;
  float epsilon;  // of the norm: squares far below it need no precision
};

// The sums of parts of rows, from which the row_gradient_terms of whole rows follow.
template <class T>
struct norm_gradient_sums {
  const T* dy;
  const T* x;
  const float* gamma;  // n
  const float* mean;   // one a row; layer_norm only
  const float* rstd;   // one a row
  double* sums;        // one a row, or two (layer_norm)
  int64_t rows;
  int64_t n;
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
  of_each_dtype<norm_sums> sums;
  of_each_dtype<norm_gradient_sums> gradient_sums;
};

}  // namespace velo::ops
