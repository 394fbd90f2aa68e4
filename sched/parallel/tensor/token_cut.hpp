// How the tokens of vocab_parallel_embedding are cut into parts: one for each rank with
// sequence_parallel, else one in all.
//
// Parts are cut along the first dimension of the indices, evenly or by a list, so each part's
// tokens are contiguous.
#pragma once

#include "ops/operator/tensor.hpp"
#include "sched/overlap/row_parts.hpp"

namespace velo::sched {

struct token_cut {
  int parts, own_part;
  std::int64_t own_rows, row_tokens;  // of the first dimension: this part's; tokens of each
  std::int64_t tokens, part_tokens;   // of all parts, of this one

  // list: nullptr for equal parts. Throws ARGUMENT for a list that does not fit, SHAPE where equal
  // parts do not.
  static token_cut of(const velo_tensor& indices, const velo_ints* list, bool is_cut, int rank,
                      int ranks);
  row_parts tokens_of(const velo_ints* list) const {
    return list == nullptr ? row_parts(tokens, parts) : row_parts(list->data, parts, row_tokens);
  }
};

// A run of tokens of each part; a part may end before it.
struct piece {
  std::int64_t begin, end;

  row_range in(const row_range& part) const;
};

}  // namespace velo::sched
