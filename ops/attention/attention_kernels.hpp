// What the walks ask of a vector instruction set: laying blocks out for the products, and the work
// between two products.
//
// Matrices here are small, dense and padded: rows to what the products need, missing elements zero.
// "Words" are 32 bits: one float, or two neighboring bf16. Cost: packing O(S D), softmax and
// gradient one pass over scores that lie in the first or second cache.
#pragma once

#include <stdint.h>

namespace velo::ops {

// Rows of a tensor: `rows` of `columns` elements, `stride` elements apart.
struct row_block {
  const void* data;
  int64_t stride;
  int rows, columns;
};

// Online softmax of 32 rows of scores against some keys. exp is taken relative to a reference, an
// earlier maximum of the row: it follows the maximum only when that is 2^8 above it, so that what
// was summed under the old one seldom has to be scaled.
struct softmax_rows {
  const float* scores;  // [32][ld]
  int64_t ld;
  void* probabilities;  // [32][p_ld] in the element type; may be where the scores are
  int64_t p_ld;
  int width;        // columns the next product reads, a multiple of 32
  int valid;        // columns from here on are padding
  int64_t visible;  // keys that row 0 sees
  int64_t step;     // more that each following row sees: 1 causal, 0 not
  float factor;     // |scale| * log2 e
  float* max;       // per row, of raw products so far
  float* reference;
  float* sum;  // per row, 16 partial sums of exp so far
  float* out;  // [32][out_ld], rescaled where the reference moves
  int64_t out_ld;
  int out_columns;  // a multiple of 16; 0 while `out` holds nothing
  int earlier;      // columns before `probabilities` whose product is still to come, rescaled too
};

// Rows of finished outputs: out = accumulated / sum, with the statistics.
struct finish_rows {
  const float* accumulated;  // [rows][ld]
  int64_t ld;
  int rows, columns;
  const float* max;
  const float* reference;
  const float* sum;  // [rows][16]
  float scale;       // |scale|
  float factor;      // |scale| * log2 e
  void* out;
  int64_t out_stride;
  float *max_out, *sum_out;  // or null
  int64_t stats_stride;
};

// Probabilities and score gradients of some keys (rows) against a block of queries (columns).
struct gradient_rows {
  float* scores;    // K Q^T, [rows][ld]; replaced by P^T in the element type
  float* products;  // V dY^T, [rows][ld]; bf16: replaced by dS^T
  void* pairs;      // dS^T again: bf16 as pairs of rows [rows/2][ld][2], f32 as rows
  int64_t ld;
  int rows;             // a multiple of 2
  int first, columns;   // columns [first, columns) are worked on, those before are 0 in pairs;
                        // multiples of 32
  int valid;            // rows below are padding
  int64_t first_query;  // the first column that row 0 is visible to; row r: r later when step = 1
  int step;
  float factor;            // |scale| * log2 e
  const float* minus_lse;  // -log2 of the sum of exp, per column
  const float* delta;      // sum of dY * out, per column
};

struct attention_kernels {
  // to[row][ld] = from, rows and columns padded with zeros; negate flips the sign.
  void (*copy_rows)(const row_block& from, void* to, int rows, int64_t ld, bool negate);
  // Words transposed: to[word][ld], `columns` of them (>= from.rows), words padded to `words`.
  void (*transpose_words)(const row_block& from, void* to, int words, int columns, int64_t ld);
  // What a product reads as its right side with rows as depth: f32 rows, bf16 pairs of rows.
  void (*pack_depth)(const row_block& from, void* to, int rows, int64_t ld);
  // Elements of transposed words side by side again: to[element][ld], element < elements.
  void (*split_words)(const void* words, int64_t words_ld, void* to, int elements, int columns,
                      int64_t ld);
  void (*softmax)(const softmax_rows&);
  void (*finish)(const finish_rows&);
  // minus_lse and delta of the queries, padded to `padded`; max, sum have stats_stride.
  void (*row_terms)(const row_block& dy, const row_block& out, const float* max, const float* sum,
                    int64_t stats_stride, int padded, float* minus_lse, float* delta);
  void (*gradient)(const gradient_rows&);
  // out[row][column] = scale * from; from is [rows][ld], or [columns][ld] when transposed, and the
  // sum of `parts` such matrices part_stride floats apart.
  void (*write_rows)(const float* from, int64_t ld, int rows, int columns, float scale, void* out,
                     int64_t out_stride);
  void (*write_transposed)(const float* from, int64_t ld, int parts, int64_t part_stride, int rows,
                           int columns, float scale, void* out, int64_t out_stride);
};

namespace avx2 {
const attention_kernels& attention_f32();
const attention_kernels& attention_bf16();
}  // namespace avx2
namespace avx512 {
const attention_kernels& attention_f32();
const attention_kernels& attention_bf16();
}  // namespace avx512
namespace avx512_bf16 {
const attention_kernels& attention_bf16();
}  // namespace avx512_bf16

}  // namespace velo::ops
