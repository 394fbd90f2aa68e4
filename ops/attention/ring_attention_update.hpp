// The merge of two partial attentions of the same queries over different keys, a step of ring
// attention.
//
//   m = max(pm, cm)   p = ps e^(pm - m)   c = cs e^(cm - m)   s = p + c
//   out = prev p / s + cur c / s
//
// with pm, ps and cm, cs the softmax_max and softmax_sum of the parts. float32, bfloat16 or float16
// outputs, float32 statistics; rounded once. Where both sums are 0 the result is 0. A slice is some
// tokens of heads side by side. Statistics that lie head by head are merged for a block of tokens
// before their rows: token by token each head would take a line of its own, from neighboring tokens
// again. Bytes: a read of both outputs and one write. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// Maxima and sums of the part before, of the current part and of both: one a token and head.
struct ring_statistics {
  const float *prev_max, *prev_sum, *cur_max, *cur_sum;
  float *max, *sum;
  int64_t token, head;  // elements from one to the next
  int copies;           // of each statistic, side by side
};

template <class T>
struct ring_slice {
  const T* prev;
  const T* cur;
  T* out;
  ring_statistics statistics;
  int64_t tokens, heads;
  int64_t d, token;  // elements of a head, and from token to token
  bool bypass;       // write out around the cache
};

struct ring_attention_update_kernels {
  of_each_dtype<ring_slice> merge;
};
extern const kernel_list ring_attention_update_kernel_list;

}  // namespace velo::ops
