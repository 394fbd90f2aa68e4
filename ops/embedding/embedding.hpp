// Rows of a table by index, and the gradient that adds them back.
//
//   y[t] = table[ids[t]];   dtable[ids[t]] += dy[t], tokens in order
//
// Table and y: float32, bfloat16 or float16, rows of n elements; dtable float32. The forward copies
// rows and has no arithmetic. The gradient orders the tokens by row first (a counting sort), so
// that every row of dtable is written by one task, once, with the sums of a row staying in L1. Both
// prefetch the next row, because rows lie anywhere. Bytes: forward one read and one write a token's
// row; backward one read of dy and one write of dtable, or one read and write of the rows used
// where it accumulates. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"
#include "ops/operator/row_copy.hpp"

namespace velo::ops {

// One token's part of a row of dtable.
template <class T>
struct embedding_row {
  const T* dy;
  const T* next_dy;         // of the token that comes after it
  const float* next_table;  // that token's row, where it will be read, else nullptr
  float* dtable;
  int64_t n;
  bool add;     // to what dtable holds
  bool bypass;  // write dtable around the cache
};

struct embedding_kernels {
  void (*copy_row)(const row_copy&);
  of_each_dtype<embedding_row> add_row;
};
extern const kernel_list embedding_kernel_list;

}  // namespace velo::ops
