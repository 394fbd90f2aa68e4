// The last step of a product: from sums to the result, with the bias and what is there already
// added, rounded once. Here is where it lands and in what type; finish.inl does it. Invariant:
// nothing beyond rows and columns is read or written. Cost: a conversion and a store a vector.
#pragma once

#include <stdint.h>

namespace velo::ops {

struct result_part {
  const float* bias;  // one a column, or null
  void* c;            // first element of the result
  int64_t ldc;
  int rows, columns;
  bool bf16, accumulate;  // result type; add to what is there
};

}  // namespace velo::ops
