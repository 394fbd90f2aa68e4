// Dropout: y = x * multiplier, which is 1 / (1 - p) where the element is kept and 0 where it is
// dropped, as core/simd/philox.hpp decides from seed, offset and the element's index, which is that
// in the whole where x is a part (ops/operator/dropout_part.hpp).
//
// float32, bfloat16 or float16, any shape, compact; rounded once. The gradient multiplies dy by the
// same numbers, so the same kernel serves it. A slice is a run of elements whose indices follow
// each other. Bytes: one read of x, one write of y, one byte an element of the mask where it is
// asked for. Bound: memory in float32, random words in 16 bits.
#pragma once

#include <stdint.h>

#include "core/simd/philox.hpp"
#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct dropout_slice {
  const T* x;
  T* y;
  uint8_t* mask;  // 1 where an element is kept, else 0; or nullptr
  const simd::dropout_rule* rule;
  uint64_t first;  // index of the slice's first element
  int64_t n;
  bool bypass;  // write y around the cache
};

struct dropout_kernels {
  of_each_dtype<dropout_slice> drop;
};
extern const kernel_list dropout_kernel_list;

}  // namespace velo::ops
