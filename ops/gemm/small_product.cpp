// One panel of columns after the other against micro-panels of A, both in place.
#include "ops/gemm/small_product.hpp"

#include <algorithm>

#include "ops/gemm/gemm_plan.hpp"

namespace velo::ops {

bool is_small(const gemm_problem& p, bool packed) {
  constexpr std::int64_t most = 64;
  // Rows of B further apart share few sets of the first cache, which more rows of A would feel.
  constexpr std::int64_t most_apart = 128, few_rows = 2 * micro_rows;
  return p.m <= most && p.n <= most && p.k <= most && p.k > 0 && !packed &&
         p.type == element_type::f32 && !p.transpose_a && !p.transpose_b && p.n % 16 == 0 &&
         (p.ldb <= most_apart || p.m <= few_rows);
}

void multiply_small(const gemm_problem& p, const gemm_kernels& kernels) {
  constexpr int panel = panel_columns(false);
  const std::int64_t element = p.c_type == element_type::bf16 ? 2 : 4;
  float no_sums[panel];  // a single pass keeps none, but places in them are worked out
  micro_args x{};
  x.a_row = p.lda, x.a_step = 1;
  x.b_step = p.ldb;
  x.words = static_cast<int>(p.k);
  x.first = x.last = true;
  x.sums = x.next_sums = no_sums;
  x.result.ldc = p.ldc;
  x.result.bf16 = p.c_type == element_type::bf16;
  x.result.accumulate = p.accumulate;
  for (std::int64_t column = 0; column < p.n; column += panel) {
    x.a = static_cast<const std::uint32_t*>(p.a);
    x.b = static_cast<const std::uint32_t*>(p.b) + column;
    x.width = x.result.columns = static_cast<int>(std::min<std::int64_t>(p.n - column, panel));
    x.result.bias = p.bias == nullptr ? nullptr : p.bias + column;
    char* c = static_cast<char*>(p.c) + column * element;
    for (int row = 0; row < p.m; row += micro_rows) {
      x.result.rows = static_cast<int>(p.m) - row;
      x.result.c = c + row * p.ldc * element;
      kernels.multiply_floats(x);
      x.a += micro_rows * p.lda;
    }
  }
}

}  // namespace velo::ops
