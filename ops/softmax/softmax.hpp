// Softmax of rows and its gradient: a family of its own, since no other family divides a row by
// its sum; unpad_softmax uses these kernels, attention has its own within its blocks.
//
//   y  = exp(scale x - m) / sum(exp(scale x - m)),  m = max(scale x)   0 where the mask hides
//   dx = scale y (dy - sum(dy y))
//
// float32, bfloat16 or float16, rows of n, arithmetic in float32. A row is a task's unit; the
// exponentials of a row stay in scratch (n floats a thread), so each is computed once. Bytes: one
// read and one write, backward two reads and one write. Bound: memory from DRAM, exp in cache.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

template <class T>
struct softmax_row {
  const T* x;
  const uint8_t* mask;  // n, or nullptr
  T* y;
  float* work;  // n
  int64_t n;
  float scale;
  bool bypass;  // write y around the cache
};

template <class T>
struct softmax_backward_row {
  const T* dy;
  const T* y;
  T* dx;
  int64_t n;
  float scale;
  bool bypass;  // write dx around the cache
};

struct softmax_kernels {
  of_each_dtype<softmax_row> forward;
  of_each_dtype<softmax_backward_row> backward;
};
extern const kernel_list softmax_kernel_list;

}  // namespace velo::ops
