// float32 parameters as bfloat16 ones and their residuals, and back bit for bit (MindSpeed's
// --reuse-fp32-param): the 4 bytes of a master parameter hold the parameter that the model reads.
//
//   split   bits = bits(master) + 0x8000 - tie;  param = upper half,  residual = lower half
//   merge   bits(master) = (param, residual) + tie - 0x8000
//
// Without ties the rounding is half up in magnitude. Half to even has a tie where the lower 17 bits
// are 0x08000; the sign of the second moment, which is never negative, then keeps it: plain for a
// tie, negative for none. Integer arithmetic, exact. Bytes: 8 a parameter, and 4 to 8 for the
// moment's sign. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// With `v` nullptr there are no ties.
template <class Moment>
struct bf16_split_slice {
  const uint32_t* master;
  simd::bf16* param;
  uint8_t* residual;  // two bytes an element, the lower first
  Moment* v;
  int64_t n;
};

template <class Moment>
struct bf16_merge_slice {
  const simd::bf16* param;
  const uint8_t* residual;
  uint32_t* master;
  Moment* v;
  int64_t n;
};

struct bf16_param_kernels {
  of_each_dtype<bf16_split_slice> split;
  of_each_dtype<bf16_merge_slice> merge;
};
extern const kernel_list bf16_param_kernel_list;

}  // namespace velo::ops
