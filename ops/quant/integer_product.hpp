// The kernels of products of int8 by int8 with sums in int32 (integer_matmul.hpp has the loops).
//
// The instruction set multiplies words: quads of bytes where it has VNNI or tile registers, pairs
// of int16 elsewhere, since the instruction for bytes before VNNI saturates. The left side is rows
// of words, the right side a panel of columns, whole depth: word w of column j at w * columns + j.
// VNNI's left side is unsigned, so 128 is added to it, and each column's sums begin at -128 times
// the sum of its weights. Invariant: sums are exact up to a depth of 131071, so that all kernels
// give the same bits. Cost: 2 m n k operations at the peak of the instruction, operands in L2.
#pragma once

#include "core/simd/bytes.hpp"
#include "ops/operator/kernels.hpp"
#include "ops/quant/finished_rows.hpp"

namespace velo::ops {

constexpr int integer_columns = 32;  // of a panel
constexpr int integer_rows = 32;     // left rows are padded to so many

struct integer_left {
  const int8_t* from;
  int64_t depth;
  int rows;
  char* to;
  int64_t ld;  // bytes between rows; elements beyond the depth are those of zeros
};

struct integer_panel {
  const int8_t* from;  // its first column; rows of k, or of n when transposed
  int64_t ld;
  bool transposed;
  int64_t depth, padded;  // elements
  int columns;            // there are; others are zero
  uint32_t* to;
  int32_t* start;  // [integer_columns]: where the sums begin
};

struct integer_block {
  const char* left;
  int64_t ld;
  int rows;  // the left side has them up to a multiple of integer_rows
  const uint32_t* panel;
  int64_t padded;
  const int32_t* start;
  int32_t* sums;  // [rows up to a multiple of integer_rows][integer_columns]
};

// float(sum + bias) * scale * row_scale, of all integer_columns: an activation reads them all.
struct scaled_sums {
  const int32_t* sums;  // rows of integer_columns
  const int32_t* bias;  // or null
  const float* scale;
  const float* row_scale;  // or null
  float* to;               // rows of integer_columns
  int rows;
};

// Rounded to nearest even, within int8; what is no number is 0.
struct rounded_rows {
  const float* from;  // rows of integer_columns
  int8_t* y;
  int64_t ldy;
  int rows, columns;
};

struct integer_product_kernels {
  core::isa isa;
  int depth_unit;     // elements that the depth is padded to
  int element_bytes;  // of the left side and the panel
  void (*take_left)(const integer_left&);
  void (*take_panel)(const integer_panel&);
  void (*multiply)(const integer_block&);
  void (*scale)(const scaled_sums&);
  void (*round)(const rounded_rows&);
  of_each_dtype<finished_rows> finish;
  void (*load_tiles)();  // around the work of a thread, or null
  void (*release_tiles)();

  bool plain() const { return multiply == nullptr; }
};
extern const kernel_list integer_product_kernel_list;

}  // namespace velo::ops
