// The terms that change a score or a probability beside the products.
//
//   S = scale Q K^T + addend,  addend = factor pse + slope bias(i, j), or -Inf where a mask hides
//   out = (P multiplier) V,    multiplier = 0 or 1 / keep of a dropout decision (core/simd/philox)
//
// A pass has scores in blocks of rows and keys. For such a block the terms are written as a tile of
// floats, a row a query, which one kernel then adds or multiplies; the gradient, whose blocks hold
// a row a key, turns the tile over. Invariant: both passes take the same bits for a pair of a query
// and a key, whatever block holds it. Cost: one pass over the tile, only where there is a term.
#pragma once

#include <stdint.h>

#include "core/simd/philox.hpp"
#include "ops/operator/kernels.hpp"

namespace velo::ops {

// A tensor [B, N, Sq, Skv] with unit stride in its last dimension; a stride is 0 where it has one
// entry for all.
struct score_tensor {
  const void* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;  // elements between neighbors
};

// Where the decisions of a call lie among those of the whole [B, N, Sq, Skv].
struct dropout_place {
  int64_t origin[4] = {}, extents[4] = {};
};

struct attention_terms {
  score_tensor mask;  // bytes: 0 leaves a score, any other hides it
  score_tensor pse;   // elements of the queries' type
  float factor = 1;   // of pse
  // Rows of a compressed pse: the last ones alone, from which others follow by shifting along the
  // diagonal; 0 where pse has all rows.
  int64_t compressed = 0;
  int64_t pse_keys = 0;  // columns of pse
  const float* slopes = nullptr;
  int64_t slopes_batch = 0, slopes_head = 0;
  bool root = false;  // the bias is -sqrt(distance), else -distance
  int64_t ahead = 0;  // queries begin so far behind the first key
  bool drops = false;
  simd::dropout_rule dropout = {};
  dropout_place place;

  bool adds() const { return mask.data != nullptr || pse.data != nullptr || slopes != nullptr; }
};

inline constexpr attention_terms no_terms{};

// The addends of a row of scores; the first `columns` have terms, those up to `width` get 0.
struct addend_row {
  const uint8_t* mask;  // or null
  const void* pse;      // or null
  int pse_columns;      // that may be read
  float factor, slope;
  float distance;  // of the query behind the row's first key
  bool root;
  float* to;
  int columns, width;  // width is a multiple of 32
};

struct multiplier_row {
  const simd::dropout_rule* rule;
  uint64_t index;
  float* to;
  int width;
};

// A block of scores or probabilities and the tile of its terms, columns [first, last).
struct term_block {
  void* at;
  int64_t ld;  // elements of `at`
  const float* tile;
  int64_t tile_ld;
  int rows, first, last;  // first and last are multiples of 32
  float scale;            // of scores
};

// to += from, columns [first, last).
struct term_sum {
  const void* from;
  int64_t from_ld;
  float* to;
  int64_t to_ld;
  int rows, first, last;
};

struct attention_terms_kernels {
  core::isa isa;
  void (*addends_f32)(const addend_row&);
  void (*addends_bf16)(const addend_row&);
  void (*addends_f16)(const addend_row&);
  void (*multipliers)(const multiplier_row&);
  void (*add)(const term_block&);  // at = scale * at + tile, and -Inf where the tile is
  void (*multiply_f32)(const term_block&);
  void (*multiply_bf16)(const term_block&);
  // to[column][row] = from[row][column]; rows and columns are multiples of 16.
  void (*sum_f32)(const term_sum&);
  void (*sum_bf16)(const term_sum&);
  void (*turn)(const float* from, int64_t ld, int rows, int columns, float* to, int64_t to_ld);
};
extern const kernel_list attention_terms_kernel_list;  // the reference is empty

}  // namespace velo::ops
