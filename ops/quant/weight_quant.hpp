// The kernels of products with weights of int8 or int4 (weight_product.hpp has the loops):
//
//   y = x ((weight + offset) * scale) + bias
//
// A few rows of x are as fast as the weight is read, so they have kernels of their own, which turn
// integers into floats in registers and scale sums instead of weights. For more rows a block of the
// weight is dequantized into a panel of the product engine, whose micro-kernel multiplies it; or
// its integers become bf16, which holds them exactly, the engine multiplies them, and sums are
// scaled. Invariant: an element's order of additions depends on the weight alone, not on the number
// of rows that share a kernel nor on the cut of the columns. Bound: few rows read the weight, many
// multiply.
#pragma once

#include "core/simd/bytes.hpp"
#include "core/simd/types.hpp"
#include "ops/gemm/kernel/element_type.hpp"
#include "ops/operator/kernels.hpp"
#include "ops/quant/finished_rows.hpp"

namespace velo::ops {

// Scales and offsets of a weight: one for each column n, or for each group of k and each n.
struct weight_scales {
  const void* scale;
  const void* offset;  // or null
  element_type type;   // of both
  int64_t ld;          // n: elements between groups
  int64_t group;       // of k; all of it where only columns have scales
};

struct widened_integers {
  const uint8_t* from;
  bool int4;
  float* to;
  int64_t n;
};

// The same as bf16.
struct integers_as_bf16 {
  const uint8_t* from;
  bool int4;
  simd::bf16* to;
  int64_t n;
};

// A panel of floats [rows][width] becomes (w + offset) * scale, or w + offset without a scale. Here
// w are the integers of the weight where its rows are stored so, else what the panel holds. Rows
// run along k, columns along n, or the other way.
struct dequantized_panel {
  const uint8_t* from;  // the panel's first integer, or null
  int64_t ld;           // bytes between rows of the weight
  bool int4;
  float* panel;
  int rows, width, columns;  // those beyond `columns` are zero, or have no scale
  weight_scales scales;
  bool rows_along_k;
  int64_t first_row, first_column;  // within the weight; the column a multiple of 16
};

constexpr int few_rows = 8;

// Up to few_rows rows of x by some columns of a weight that is stored [k][n].
struct few_by_columns {
  const float* x;  // [rows][ldx]
  int64_t ldx;
  int rows;
  int64_t k;
  const uint8_t* weight;  // the byte of the first column, which is a multiple of 32
  int64_t ld;             // bytes between rows
  bool int4;
  int64_t first, columns;
  weight_scales scales;
  float* sums;  // [rows][ldy], scratch
  float* y;     // [rows][ldy]
  int64_t ldy;
};

// The same by some rows of a weight that is stored [n][k].
struct few_by_rows {
  const float* x;  // [rows, or few_rows where there is more than one][ldx]
  int64_t ldx;
  int rows;
  int64_t k;
  const uint8_t* weight;  // the byte of the first row
  int64_t ld;
  bool int4;
  int64_t first, columns;  // rows of the weight
  weight_scales scales;
  float* y;  // [rows][ldy]
  int64_t ldy;
};

// Sums of a group become its share of the result: y = sums * scale, and y += with `add`.
struct group_sums {
  const float* sums;  // [rows][ld]
  float* y;           // [rows][ld]
  int64_t ld, rows, columns;
  weight_scales scales;
  int64_t first;  // the scale of the first column
  bool add;
};

struct weight_quant_kernels {
  core::isa isa;  // scalar in the reference, which has no kernels
  void (*widen)(const widened_integers&);
  void (*widen_to_bf16)(const integers_as_bf16&);
  bool (*add_group)(const group_sums&);  // returns whether every y is finite
  void (*dequantize)(const dequantized_panel&);
  void (*order_row)(float* x, int64_t n);  // for by_rows of int4
  void (*by_columns)(const few_by_columns&);
  void (*by_rows)(const few_by_rows&);
  of_each_dtype<finished_rows> finish;

  bool plain() const { return widen == nullptr; }
};
extern const kernel_list weight_quant_kernel_list;

}  // namespace velo::ops
