// Micro-panels of A by panels of columns of B, both read in place.
#include "ops/gemm/small_product.hpp"

#include <algorithm>

#include "ops/gemm/output.hpp"
#include "ops/gemm/pack/packed_form.hpp"

namespace velo::ops {

bool is_small(const gemm_problem& p) {
  constexpr std::int64_t most = 64;
  // Rows of B further apart share few sets of L1, which slows products of more rows of A.
  constexpr std::int64_t most_apart = 128, few_rows = 2 * micro_rows;
  return p.m <= most && p.n <= most && p.k <= most && p.k > 0 && p.packed_b == nullptr &&
         p.type == element_type::f32 && !p.transpose_a && !p.transpose_b && p.n % 16 == 0 &&
         (p.ldb <= most_apart || p.m <= few_rows) && p.epilogue.gate.finish == nullptr &&
         p.rows_of_a.write == nullptr;
}

void multiply_small(const gemm_problem& p, const gemm_kernels& kernels) {
  constexpr int panel = panel_columns(false);
  float no_sums[panel];  // a single pass keeps none, but the kernel computes addresses in them
  micro_args x{};
  x.a_row = p.lda;
  x.a_step = 1;
  x.b_step = p.ldb;
  x.words = static_cast<int>(p.k);
  x.first = x.last = true;
  x.sums = x.next_sums = no_sums;
  for (std::int64_t column = 0; column < p.n; column += panel) {
    x.a = static_cast<const std::uint32_t*>(p.a);
    x.b = static_cast<const std::uint32_t*>(p.b) + column;
    x.width = static_cast<int>(std::min<std::int64_t>(p.n - column, panel));
    x.output = output_of(p, {0, column, static_cast<int>(p.m), x.width, x.width == panel});
    for (; x.output.rows > 0; x.output.skip_rows(micro_rows)) {
      kernels.multiply_floats(x);
      x.a += micro_rows * p.lda;
    }
  }
}

}  // namespace velo::ops
