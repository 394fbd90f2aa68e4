// generate_mask and alibi_slopes: the tensors that attention's modes and position terms name.
//
// A row of a mask is hidden but for a range of columns. alibi's slope of head h of n is
// 2^(-8 (h + 1) / p) below p, the largest power of two up to n, and 2^(-4 (2 (h - p) + 1) / p) from
// there on: the odd ones of twice as many heads.
// Cost: one write of the mask; slopes are not hot.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// A row: columns [first, last) are 0, the others 1.
struct mask_row {
  uint8_t* to;
  int64_t first, last, columns;
  bool bypass;  // write around the cache
};

struct generate_mask_kernels {
  void (*fill)(const mask_row&);
};
extern const kernel_list generate_mask_kernel_list;

}  // namespace velo::ops
