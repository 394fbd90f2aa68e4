// The epilogue of a product: everything that happens to its sums after the multiplication, as the
// post-operations of oneDNN do.
//
// An element x of the sums passes these steps in registers, in this order:
//   1. residual      x += residual[row][column]
//   2. bias          x += bias[column]
//   3. accumulate    x += what C holds
//   4. rounding      x  = x in C's type
//   5. addends       x  = the sum of several matrices, one of which is this product, rounded again
//   6. stores        C = x, and the second output = x
// A product with addends or with C in panels has none of the first three and needs a packed weight.
// Copies need one, too.
//
// A gated product has columns of two halves and a bias alone: x becomes f(x) times its partner in
// the other half, rounded once. Sums of both halves wait in scratch, a panel of each at a time, and
// `gate` finishes them there (tiled_product.hpp).
//
// A new step is a field here and in kernel/output_block.hpp, and a line in `output_of`
// (output.hpp), in kernel/epilogue.inl (which names the other kernels that apply it) and in
// gemm_ref.cpp.
#pragma once

#include <cstdint>

namespace velo::ops {

struct gated_block;
struct overlapped_copy;

// Rows `ld` elements apart; or panels of columns as wide as those of the packed weight, each
// panel's rows contiguous (a blocked layout in oneDNN), so that whole lines are written.
enum class matrix_layout : int { rows, panels };

// Matrices of C's type in panels whose sum the result is, added in f32 in the order of the list.
struct addend_list {
  const void* const* matrices = nullptr;  // null: the result is the product alone
  int terms = 0, position = 0;  // matrices[position] is this product, rounded, and is not read
};

struct second_output {
  void* data = nullptr;  // null: there is none; rows begin and end at lines
  std::int64_t ld = 0;
  matrix_layout layout = matrix_layout::rows;
};

// The rows of a product within the matrices in panels that it reads and writes.
struct panel_extent {
  std::int64_t rows = 0;   // of each of these matrices
  std::int64_t first = 0;  // the one that is the product's first
};

// A matrix of C's type, or of f32, that is added: rows `ld` elements apart, or where a list says,
// so that one row may serve many; whole rows, or one element for all columns.
struct residual_matrix {
  const void* data = nullptr;  // null: there is none
  std::int64_t ld = 0;
  const std::int64_t* rows = nullptr;  // the element at which each row of C finds its own, or null
  bool one_column = false;
  bool in_f32 = false;
};

// The gate of a product whose n columns are those of a gate g, then those of its factor u: C has
// half of them, f(g) * u.
struct gate_step {
  void (*finish)(const gated_block&) = nullptr;  // null: the product is not gated
  void* before = nullptr;                        // [m][n] in C's type: g and u, or null
  std::int64_t ld_before = 0;
};

struct gemm_epilogue {
  residual_matrix residual;
  const float* bias = nullptr;  // one a column, or null
  bool accumulate = false;
  gate_step gate;
  addend_list addends;
  second_output second;                     // of a sum with addends, written around the cache
  panel_extent panels;                      // of C in panels, addends and the second output
  const overlapped_copy* copies = nullptr;  // memory that is copied during the product
};

}  // namespace velo::ops
