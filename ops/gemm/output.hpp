// The output block of a kernel call, from a product's description: pointers into C, the bias, the
// addends and the second output.
#pragma once

#include "ops/activation/gated.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/kernel/output_block.hpp"

namespace velo::ops {

// A part of C inside one panel of columns.
struct output_range {
  std::int64_t row, column;  // the first ones
  int rows, columns;
  bool whole_panel;  // not a last, narrower panel
};

output_block output_of(const gemm_problem& problem, const output_range& range);

// The block of a gated product from a row and a column of C on, with its results' places and its
// biases, but without sums and size.
gated_block gated_output(const gemm_problem& problem, std::int64_t row, std::int64_t column);

// Whether some stores bypass the cache, so that a fence must follow them.
inline bool stores_around_cache(const gemm_problem& problem) {
  return problem.c_layout == matrix_layout::panels || problem.epilogue.second.data != nullptr;
}

}  // namespace velo::ops
