// A product of int8 by int8: y = act((x w + bias) * scale * row_scale), for rows that share w.
//
// Rows come in blocks of 256, whose left side is made once; a task then packs a panel of 32 columns
// over the whole depth, unless w comes packed, and multiplies all rows of the block by it. Sums are
// int32, scaled in float32, rounded once. Scratch: a block of rows, and for each thread a panel and
// 64 KB.
#pragma once

#include "core/stream/execution.hpp"
#include "ops/activation/function.hpp"
#include "ops/gemm/kernel/element_type.hpp"
#include "ops/quant/integer_product.hpp"
#include "ops/quant/packed_integers.hpp"

namespace velo::ops {

constexpr std::int64_t most_integer_depth = 131071;  // the sums of which fit in int32

struct integer_matmul {
  std::int64_t m, n, k;
  const std::int8_t* x;  // [m][k]
  const std::int8_t* w;  // [k][n], or [n][k]
  bool transposed;
  const std::int32_t* bias;  // [n], or null
  const float* scale;        // [n]
  const float* row_scale;    // [m], or null
  int function;              // an activation_function, or -1
  void* y;                   // [m][n]
  bool to_int8;              // y is int8, otherwise:
  element_type y_type;
  const packed_integers* packed = nullptr;  // or, in place of w, a form that serves the kernels
  std::int64_t ld = 0;                      // elements between rows of a plain w; 0: n or k
};

void multiply(const integer_matmul& p, const integer_product_kernels& kernels, core::execution& on);

}  // namespace velo::ops
