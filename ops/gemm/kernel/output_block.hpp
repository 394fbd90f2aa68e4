// The rows and columns of a result that one kernel call finishes: where the sums go, in which type,
// and which steps of the epilogue (ops/gemm/epilogue.hpp) they pass on the way.
//
// Kernels apply the steps while the sums are in registers (epilogue.inl). Invariant: nothing beyond
// `rows` and `columns` is read or written. Cost: a conversion and a store a vector, and a load for
// each addend.
#pragma once

#include <stdint.h>

#include "ops/gemm/kernel/element_type.hpp"

namespace velo::ops {

struct output_block {
  const float* bias;  // one a column, or null
  void* c;            // first element of the result
  int64_t ldc;
  int rows, columns;
  element_type type;  // of the result
  bool accumulate;    // whether C's old value is added
  bool nontemporal;   // stores bypass the cache: all columns, c at a whole vector

  // The first element of the matrix of C's type, or of f32, that is added, or null. With a list,
  // its row i begins at element residual_rows[i].
  const void* residual;
  int64_t ld_residual;
  const int64_t* residual_rows;
  bool one_column;  // one element serves all columns of a row
  bool residual_in_f32;

  // The result is the sum of `terms` matrices in the order of the list. Number `position` is this
  // product and is not read. Null: there are no addends.
  const void* const* addends;
  int terms, position;
  int64_t addend_first, ld_addends;  // elements to the first one that is read; between rows

  void* second;  // the second output, or null
  int64_t ld_second;
  bool second_nontemporal;  // whole vectors bypass the cache

  __attribute__((always_inline)) int64_t residual_bytes() const {  // of an element
    return residual_in_f32 ? 4 : element_bytes(type);
  }

  // Makes row `count` the first one, in all matrices. It is always inlined, because files compiled
  // for one ISA may not emit an inline function.
  __attribute__((always_inline)) void skip_rows(int count) {
    const int64_t element = element_bytes(type);
    rows -= count;
    c = static_cast<char*>(c) + count * ldc * element;
    addend_first += count * ld_addends;
    if (residual_rows != nullptr) {
      residual_rows += count;
    } else if (residual != nullptr) {
      residual = static_cast<const char*>(residual) + count * ld_residual * residual_bytes();
    }
    if (second != nullptr) second = static_cast<char*>(second) + count * ld_second * element;
  }
};

}  // namespace velo::ops
