// Rows of tokens brought into the order of their experts and back, with gradients.
//
//   copy   permuted[row] = tokens[t]            for the rows of t
//   sum    y[t] = sum_j w[j] permuted[rows[j]]  in the order of the list, in float32, rounded once
//   scale  dpermuted[rows[j]] = w[j] dy[t]
//   dots   d[j] = dot(permuted[rows[j]], dy[t])
//
// float32, bfloat16 or float16, weights float32. A token's row is read once and its copies are
// written from L1; rows lie anywhere, and the next token's are prefetched. A slice is some tokens.
// Bytes: the rows once, each way. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"
#include "ops/operator/row_copy.hpp"

namespace velo::ops {

// The rows of one token among the permuted ones: those that `rows` lists, of n elements.
struct token_rows {
  const int32_t* rows;
  const float* weights;  // or null: each is 1
  int64_t count;
  const int32_t* next;  // rows that will be read after them
  int64_t next_count;   // 0: none, and `next` has one that may be prefetched
  int64_t n;
};

template <class T>
struct token_sum {
  token_rows at;
  const T* permuted;
  T* y;
  bool bypass;  // write y around the cache
  // Rows of several matrices instead: entry j is of matrix ranks[j]; those of `next` come behind.
  const T* const* matrices = nullptr;
  const int32_t* ranks = nullptr;

  const T* row(int64_t j) const { return matrix(j) + at.rows[j] * at.n; }
  const T* next_row(int64_t j) const {
    return at.next_count == 0 ? matrix(0) : matrix(at.count + j) + at.next[j] * at.n;
  }
  const T* matrix(int64_t j) const { return matrices == nullptr ? permuted : matrices[ranks[j]]; }
};

template <class T>
struct token_scale {
  token_rows at;
  const T* dy;
  T* dpermuted;
  bool bypass;  // write dpermuted around the cache
};

template <class T>
struct token_dots {
  token_rows at;
  const T* permuted;
  const T* dy;
  float* dots;  // one a row of the list
};

struct moe_token_kernels {
  void (*copy_row)(const row_copy&);
  of_each_dtype<token_sum> sum;
  of_each_dtype<token_scale> scale;
  of_each_dtype<token_dots> dots;
};
extern const kernel_list moe_token_kernel_list;

}  // namespace velo::ops
