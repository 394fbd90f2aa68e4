// Sequences to and from rows of a batch: copies of whole sequences, with zeros after them.
//
//   y[i, j] = x[start[i] + j] for j < length[i], 0 beyond      and the way back
//
// Elements of any type, moved as bytes. A slice is a run of rows of one sequence, or of zeros.
// Bytes: one read and one write. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

struct pad_slice {
  const void* from;  // nullptr: zeros
  void* to;
  int64_t bytes;
  bool bypass;  // write around the cache
};

struct pad_kernels {
  void (*move)(const pad_slice&);
};
extern const kernel_list pad_kernel_list;

}  // namespace velo::ops
