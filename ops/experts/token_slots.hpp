// The rows of each token among permuted rows: a list for each token, from either form of indices.
//
// Without padding `sorted_indices[t k + j]` is the row of a token's j-th choice; rows beyond those
// that are kept are left out. In padded mode `indices[e][c]` is the token of row e capacity + c,
// and a token may have any number of rows, in ascending order. Indices are data: they are checked
// when a call runs, before it writes. Cost: one or two passes over the indices on the calling
// thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/host/arena.hpp"
#include "core/stream/execution.hpp"
#include "ops/experts/moe_token.hpp"
#include "ops/operator/rows.hpp"
#include "ops/operator/tensor.hpp"

namespace velo::ops {

struct token_slots {
  std::int64_t tokens = 0;
  std::int64_t* start = nullptr;   // [tokens + 1], into the lists
  std::int32_t* rows = nullptr;    // the lists of all tokens
  std::int64_t* places = nullptr;  // of each entry among the probabilities

  std::int64_t count(std::int64_t t) const { return start[t + 1] - start[t]; }
  std::int64_t entries() const { return start[tokens]; }

  // The rows of token `t`, each of n elements; the lists follow each other.
  token_rows of(std::int64_t t, const float* weights, std::int64_t n) const {
    static constexpr std::int32_t none = 0;
    const std::int64_t first = start[t], left = entries() - start[t + 1];
    return {rows + first, weights == nullptr ? nullptr : weights + first,
            count(t),     left == 0 ? &none : rows + start[t + 1],
            left,         n};
  }
};

// How a call's indices are to be read.
struct slot_form {
  std::int64_t tokens;  // T
  std::int64_t rows;    // permuted rows that are kept
  bool padded;
  std::int64_t experts;  // padded: of the probabilities, [T, experts]
};

// The rows that are kept of `slots`: so many, or all but so many.
inline std::int64_t rows_kept(std::int64_t wanted, std::int64_t slots) {
  return wanted > 0 ? std::min(wanted, slots) : std::max<std::int64_t>(slots + wanted, 0);
}

// Refuses indices that name no row or token and, without padding, rows that are named twice.
token_slots read_slots(const velo_tensor& indices, const char* field, const slot_form& form,
                       core::arena& scratch);

// Slices of tokens whose rows, one and some more for each, are about 64 KiB.
inline row_slices slice_tokens(std::int64_t tokens, std::int64_t rows, std::int64_t row_bytes) {
  const std::int64_t each = 1 + (tokens == 0 ? 0 : core::ceil_div(rows, tokens));
  return slice_rows(tokens, each * row_bytes);
}

}  // namespace velo::ops
