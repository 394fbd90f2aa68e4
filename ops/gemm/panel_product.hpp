// Small products  C[m x n] (+)= A[m x k] B[k x n]  of operands in cache, already in the forms that
// the engine's kernels read. Attention consists of them.
//
// A is plain rows of words. B is panels of columns, each panel's rows contiguous (right_side). Sums
// are rows of floats, so that the steps between two products read them in order. Invariant: an
// element is one chain of multiply-adds in ascending depth that begins at zero or at what C holds,
// wherever it lies. Cost: 2 m n k FLOP at the speed of micro_kernel.hpp, or of tile registers.
#pragma once

#include "ops/gemm/pack/packed_form.hpp"

namespace velo::ops {

// How a target multiplies elements of one type.
struct product_form {
  element_type type, compute;  // of the source, of the words
  const gemm_kernels& kernels;
  bool on_tile_registers;
  int panel;  // columns of a panel
  int unit;   // columns and depth are padded to multiples of it

  product_form(element_type type, const gemm_target& target);

  int per_word() const { return compute == element_type::bf16 ? 2 : 1; }
  int bytes() const { return 4 / per_word(); }  // of an element of A or B
};

// Word w of column j lies at words + (j / panel) * panel_words + w * step + j % panel; step is the
// panel's own width or, in a matrix of plain rows, the distance between these.
struct right_side {
  std::uint32_t* words;
  std::int64_t panel_words;  // from panel to panel
  int columns;               // a multiple of 16; the last panel may be narrower than the others
  // Words between plain rows, which tile registers do not read; 0 where panels are packed.
  std::int64_t row = 0;

  int width(const product_form& form, int panel) const {
    const int left = columns - panel * form.panel;
    return left < form.panel ? left : form.panel;
  }
  std::int64_t step(const product_form& form, int panel) const {
    return row > 0 ? row : width(form, panel);
  }
};

// Packs `depth` x `columns` of a matrix, and zeros up to the side's columns and `words` of the
// depth.
void pack_right(const product_form& form, const source_matrix& from, int depth, int columns,
                int words, const right_side& to);

struct panel_product {
  const void* a;
  std::int64_t a_row;  // words between rows
  right_side b;
  int first_column, columns;  // of B and C, multiples of the form's unit or, in vectors, of 16
  int first_word, words;      // of B's depth; on tile registers multiples of 16
  float* c;                   // its column 0
  std::int64_t ldc;
  int rows;  // on tile registers a multiple of 32
  bool add;  // to what C holds
};

// A thread that multiplies on tile registers must hold a tile_session.
void multiply(const product_form& form, const panel_product& x);

}  // namespace velo::ops
