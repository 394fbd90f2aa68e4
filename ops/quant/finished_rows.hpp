// Rows of float32 sums in the type of the result.
#pragma once

#include <stdint.h>

namespace velo::ops {

// With a bias, one a column.
template <class T>
struct finished_rows {
  const float* sums;
  int64_t ld_sums;
  const float* bias;  // or null
  T* y;
  int64_t ldy;
  int64_t rows, columns;
};

}  // namespace velo::ops
