// A product with a quantized weight: y = x w + bias, or dx = dy w^T.
//
// Up to 16 rows by w, in blocks of few_rows, are a kernel over columns or rows of the weight, as it
// is stored, a task each; with row_invariant and a transposed weight all rows are. Many rows of
// bf16 are products of bf16 where a processor multiplies those faster (bf16_weight_product.hpp).
//
// All else: rows of x are widened in blocks of the depth. A task makes floats of its panel of
// columns, a block of the depth at a time, which the product engine's micro-kernel multiplies while
// it is in cache; 512 rows share the work. A weight that is not transposed gets no scales there:
// its sums do, so that their bits are those of a few rows. Invariant: cuts of columns change no
// element. Scratch: 512 rows of x in float32 and 300 KB a thread. Cost: 2 m n k FLOP at the
// engine's speed, or one read of the weight.
#pragma once

#include "core/stream/execution.hpp"
#include "ops/quant/weight_matrix.hpp"

namespace velo::ops {

// Products of at most this many rows use the kernels for few rows.
constexpr std::int64_t most_few_rows = 2 * few_rows;

// Whether a product of integers by bf16 is one of bf16 where the processor multiplies those faster:
// offsets are no integers.
constexpr bool suits_bf16(std::int64_t m, element_type x, bool has_offset, bool row_invariant) {
  return m > most_few_rows && x == element_type::bf16 && !has_offset && !row_invariant;
}

struct weight_product {
  weight_matrix w;
  bool backward;  // by the transpose
  std::int64_t m;
  const void* x;  // [m][depth], compact
  element_type x_type;
  const float* bias;  // or null
  void* y;            // [m][columns], compact
  element_type y_type;
  bool row_invariant = false;  // the order of additions is that of a few rows

  std::int64_t depth() const { return backward ? w.n : w.k; }
  std::int64_t columns() const { return backward ? w.k : w.n; }
};

void multiply(const weight_product& p, const weight_quant_kernels& kernels, core::execution& on);

struct index_range {
  std::int64_t begin, end;

  std::int64_t size() const { return end - begin; }
};

// For its loops: recomputes sums that are not finite although the row of x is, because the sum may
// have overflowed before its scale. `sums`: one row of `columns`, before the bias.
void recompute_overflowed(const weight_product& p, std::int64_t row, index_range columns,
                          float* sums);

// y = sums + bias, rounded.
void finish_sums(const weight_product& p, const weight_quant_kernels& kernels, const float* sums,
                 std::int64_t ld, index_range rows, index_range columns);

}  // namespace velo::ops
