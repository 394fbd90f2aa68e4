// A product with a quantized weight: y = x w + bias, or dx = dy w^T.
//
// Up to 16 rows by w, in blocks of few_rows, are a kernel over columns or rows of the weight, as it
// is stored, a task each. All else: rows of x are widened in blocks of the depth, and a task
// dequantizes its panel of columns a block of the depth at a time, which the product engine's
// micro-kernel multiplies while it is in cache; 256 rows share the work. Invariant: cuts of columns
// change no element. Scratch: 256 rows of x in float32 and 150 KB a thread. Cost: 2 m n k FLOP at
// the engine's speed in float32, or one read of the weight.
#pragma once

#include "core/stream/execution.hpp"
#include "ops/quant/weight_matrix.hpp"

namespace velo::ops {

struct weight_product {
  weight_matrix w;
  bool backward;  // by the transpose
  std::int64_t m;
  const void* x;  // [m][depth], compact
  element_type x_type;
  const float* bias;  // or null
  void* y;            // [m][columns], compact
  element_type y_type;

  std::int64_t depth() const { return backward ? w.n : w.k; }
  std::int64_t columns() const { return backward ? w.k : w.n; }
};

void multiply(const weight_product& p, const weight_quant_kernels& kernels, core::execution& on);

}  // namespace velo::ops
