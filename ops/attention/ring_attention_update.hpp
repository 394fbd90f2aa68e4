// The merge of two partial attentions of the same queries over different keys, a step of ring
// attention.
//
//   m = max(pm, cm)   p = ps e^(pm - m)   c = cs e^(cm - m)   s = p + c
//   out = prev p / s + cur c / s
//
// with pm, ps and cm, cs the softmax_max and softmax_sum of the parts. float32, bfloat16 or float16
// outputs, float32 statistics; rounded once. Where both sums are 0 the result is 0. A slice is rows
// of one head size side by side, whose statistics have a stride. Bytes: a read of both outputs and
// one write. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// Of the part before, of the current part, and of both; an element for each row.
struct ring_statistics {
  const float *prev_max, *prev_sum, *cur_max, *cur_sum;
  float *max, *sum;
  int64_t step;  // elements from row to row
  int copies;    // of each statistic, side by side
};

template <class T>
struct ring_slice {
  const T* prev;
  const T* cur;
  T* out;
  ring_statistics statistics;
  int64_t rows, d;
  bool bypass;  // write out around the cache
};

struct ring_attention_update_kernels {
  of_each_dtype<ring_slice> merge;
};
extern const kernel_list ring_attention_update_kernel_list;

}  // namespace velo::ops
