// The loops of embedding and of its gradient over tokens, for operators that find the rows of their
// tokens in their own way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ops/embedding/embedding.hpp"
#include "ops/operator/indices.hpp"
#include "ops/operator/rows.hpp"

namespace velo::ops {

// Copies a row of `bytes` bytes to y for each token; row_of(t) is its address.
template <class RowOf>
void copy_rows(const RowOf& row_of, std::int64_t tokens, std::int64_t bytes, char* y,
               const embedding_kernels& kernels, core::execution& on) {
  const row_slices slices = slice_rows(tokens, bytes);
  const bool bypass = bypass_cache(y, tokens, bytes, on);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t t = first; t < first + slices.count(task); ++t) {
      const char* row = row_of(t);
      if (bypass) {
        kernels.copy_row({row, row_of(std::min(t + 1, tokens - 1)), y + t * bytes, bytes});
      } else {
        std::memcpy(y + t * bytes, row, static_cast<std::size_t>(bytes));
      }
    }
  });
}

// A gradient [tokens, n] to add to rows of a table by index.
struct token_gradient {
  const velo_tensor& ids;  // an id below 0: the token adds nothing
  velo_dtype dtype;        // of dy
  const void* dy;
  float* table;
  std::int64_t rows, n;  // of the table
  bool accumulate;       // add to what the table holds
};
// Each row gets the sum over its tokens in order, whatever the threads. Inside a turn.
void add_rows(const token_gradient& of, const embedding_kernels& kernels, core::execution& on);

}  // namespace velo::ops
