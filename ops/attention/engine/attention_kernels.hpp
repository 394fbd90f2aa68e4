// The vector kernels of attention: the work before, between and after products.
//
// Matrices here are small, dense and padded: rows to what the products need, missing elements zero.
// "Words" are 32 bits: one float, or two neighboring bf16 (ops/gemm). Cost: copies O(S D), softmax
// and gradient one pass over scores in L1 or L2.
#pragma once

#include <stdint.h>

#include "ops/gemm/kernel/element_type.hpp"
#include "ops/operator/kernels.hpp"

namespace velo::ops {

// Rows of a tensor: `rows` of `columns` elements, `stride` elements apart.
struct row_block {
  const void* data;
  int64_t stride;
  int rows, columns;
};

// Online softmax of up to 32 rows of products with some keys; a score is a product times the scale,
// rounded. exp is relative to a reference, an earlier maximum of the row. The reference follows the
// maximum only when that is 2^8 above it, so that earlier sums are seldom rescaled.
struct softmax_rows {
  int rows;
  const float* scores;  // [rows][ld], before the scale
  int64_t ld;
  void* probabilities;  // [rows][p_ld] as the product reads them; may be where the scores are
  int64_t p_ld;
  int width;         // columns the next product reads, a multiple of 32
  const int* first;  // [rows]: a row sees columns from first to last, within [0, width];
  const int* last;   // [rows]: none where last <= first
  float scale;       // not negative
  float* max;        // per row, of scores so far; this and the next padded to 32
  float* reference;
  float* sum;  // per row, 16 partial sums of exp so far
  float* out;  // [rows][out_ld], rescaled where the reference moves
  int64_t out_ld;
  int out_columns;  // a multiple of 16; 0 while `out` holds nothing
};

// Rows of finished outputs: out = accumulated / sum, with the statistics.
struct finish_rows {
  const float* accumulated;  // [rows][ld]
  int64_t ld;
  int rows, columns;
  const float* max;
  const float* reference;
  const float* sum;  // [rows][16]
  void* out;
  int64_t out_stride;
  float *max_out, *sum_out;  // or null
  int64_t stats_stride;
};

// Sixteen columns of a right side: their offset, and the distance of their words of the depth.
struct column_group {
  int64_t offset, step;
};

// Probabilities and score gradients of some keys (rows) and a block of queries (columns).
struct gradient_rows {
  float* scores;               // K Q^T, [rows][ld]; replaced by P^T in the type that products read
  float* products;             // V dY^T, [rows][ld]; replaced by dS^T where a word holds two
  uint32_t* words;             // dS^T as a right side with these rows in its depth
  const column_group* groups;  // of its columns, sixteen each
  int first_word;              // of the depth, where these rows begin
  int64_t ld;
  int rows;               // a multiple of 2
  int first, last;        // columns [first, last) are worked on, multiples of 32;
  int columns;            // the others are 0 in words
  const int* first_seen;  // [rows]: a row is seen by columns from first_seen to last_seen,
  const int* last_seen;   // [rows]: within [0, columns]; by none where last_seen <= first_seen
  float scale;
  const float* max;            // as the forward left it, per column
  const float* minus_log_sum;  // -log2 of the sum of exp under max, per column
  const float* delta;          // sum of dY * out, per column
};

// The steps for one type of the tensors' elements and one type that products read.
struct attention_steps {
  // to[row][ld] = from, rows and columns padded with zeros; negate flips the sign.
  void (*copy_rows)(const row_block& from, void* to, int rows, int64_t ld, bool negate);
  void (*softmax)(const softmax_rows&);
  void (*finish)(const finish_rows&);
  // Per-column terms of the gradient, padded to `padded`; max and sum have stats_stride.
  void (*row_terms)(const row_block& dy, const row_block& out, const float* max, const float* sum,
                    int64_t stats_stride, int padded, float* row_max, float* minus_log_sum,
                    float* delta);
  void (*gradient)(const gradient_rows&);
  // out[row][column] = scale * from, or adds it; from is [rows][ld], or [columns][ld] when
  // transposed, and the sum of `parts` such matrices part_stride floats apart.
  void (*write_rows)(const float* from, int64_t ld, int rows, int columns, float scale, void* out,
                     int64_t out_stride, bool add);
  void (*write_transposed)(const float* from, int64_t ld, int parts, int64_t part_stride, int rows,
                           int columns, float scale, void* out, int64_t out_stride, bool add);
};

struct attention_kernels {
  core::isa isa;
  attention_steps floats;               // f32
  attention_steps wide_bf16, wide_f16;  // 16 bits that products read as floats
  attention_steps pairs;                // bf16 as it is; empty where there is no dot product

  bool plain() const { return floats.softmax == nullptr; }
  // Whether an ISA below has the same steps for `type`: a dot product changes those of bf16 alone.
  bool repeats(element_type type) const {
    return pairs.softmax != nullptr && type != element_type::bf16;
  }
};
extern const kernel_list attention_kernel_list;  // the reference is empty

}  // namespace velo::ops
