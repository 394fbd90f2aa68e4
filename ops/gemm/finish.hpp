// The last step of a product: from sums to the result, with the bias and what is there already
// added, rounded once. Here is where it lands and in what type; finish.inl does it. Products of
// other ranks can be added on the way: to the rounded one, in the order of the ranks, as reductions
// do it (comm/reduction/reduction.hpp), while it is in registers, and the sum be written twice.
// Invariant: nothing beyond rows and columns is read or written. Cost: a conversion and a store a
// vector, and a load for each other rank.
#pragma once

#include <stdint.h>

namespace velo::ops {

struct result_part {
  const float* bias;  // one a column, or null
  void* c;            // first element of the result
  int64_t ldc;
  int rows, columns;
  bool bf16, accumulate;  // result type; add to what is there
  bool bypass;            // write around the cache: all columns, c at a whole vector

  // Rounded products of `ranks` ranks but `own`, each as c is but `ld_products` from row to row;
  // null: there are no others.
  const void* const* products;
  int ranks, own;
  int64_t place, ld_products;  // of the first element in each; elements

  void* twin;  // where such a sum is written once more, ld_twin from row to row; null: nowhere
  int64_t ld_twin;
  bool twin_bypass;  // around the cache, where whole vectors are
};

}  // namespace velo::ops
