// The parts that an exchange of rows and heads moves: which rows and heads each rank has, and the
// assembly of a rank's result from the tensors of all.
//
// Matrices are rows of heads of `head_bytes`. Ranks may have the same head: where the result has
// all heads, theirs are summed in float32 in the order of ranks and rounded once. Invariant: the
// bits do not depend on the way in which the tensors came. Cost: one read of every part and one
// write of the result.
#pragma once

#include <cstdint>

#include "core/stream/execution.hpp"
#include "ops/gemm/kernel/element_type.hpp"
#include "sched/parallel/context/rows.hpp"
#include "velo/types.h"

namespace velo::sched {

// Counts of each rank: those of a list, or equal ones.
struct head_cut {
  int ranks;
  std::int64_t all_rows, all_heads;
  const std::int64_t* rows;   // [ranks], or null
  const std::int64_t* heads;  // [ranks][2], or null

  std::int64_t rows_of(int rank) const { return rows == nullptr ? all_rows / ranks : rows[rank]; }
  std::int64_t first_row(int rank) const;
  std::int64_t heads_together() const;  // a head of several ranks counts once for each
  span heads_of(int rank) const {
    if (heads != nullptr) return {heads[2 * rank], heads[2 * rank + 1]};
    const std::int64_t each = all_heads / ranks;
    return {rank * each, (rank + 1) * each};
  }
};

// Rows of all heads or of some, as they lie on a rank or came from it.
struct head_rows {
  const char* first;
  std::int64_t row_bytes;
};

struct head_size {
  ops::element_type type;
  std::int64_t elements, bytes;
};

// Copies rows of some heads of one rank into rows of the result that has only those.
void copy_heads(const head_rows& from, span heads, std::int64_t rows, const head_size& each,
                char* to, std::int64_t to_row_bytes, core::execution& turn);

// The same to memory that another rank has read, row after row. A long copy overwrites cache lines
// without reading them from that rank's cache first, so short rows are gathered in a block.
void pack_heads(const head_rows& from, span heads, std::int64_t rows, const head_size& each,
                char* to, core::execution& turn);

// Assembles rows of all heads. parts: of each rank, rows of its heads alone.
void join_heads(const head_cut& cut, const head_rows* parts, std::int64_t rows,
                const head_size& each, char* to, core::execution& turn);

}  // namespace velo::sched
