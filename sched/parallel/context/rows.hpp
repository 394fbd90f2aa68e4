// Which rows of a sequence the ranks of a context-parallel group hold.
//
// Rows are spans of the whole sequence, in the order of a rank's own tensors: tokens, labels,
// rotary positions and masks alike. A causal sequence is cut in a zigzag, document by document: of
// 2c chunks a rank of c holds chunks r and 2c-1-r, so that every rank sees as many cells where
// chunks are equal. Chunks and contiguous parts follow the uneven rule
// (comm/sharding/axis_cut.hpp), so that nothing has to divide. A ring rank may be u neighbors that
// exchange heads; they share its list in contiguous parts. Invariant: the lists of all ranks make
// up the sequence. Cost: two spans a document.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/sharding/axis_cut.hpp"

namespace velo::sched {

using comm::span;
using rows = std::vector<span>;

std::int64_t size_of(const rows& of);
void append(rows& to, span one);  // joins spans that touch; empty ones are left out

// The rows of some spans in ascending order, without repeats.
rows united(rows all);
// Whether rows ascend without repeats.
bool is_ascending(const rows& of);

// Rows [begin, end) of a list, counted in the list.
rows part_of(const rows& list, span part);
// The rows of a list that lie in a span of the sequence.
rows within(const rows& list, span of);

// A sequence of documents, one behind the other; some may be empty.
struct documents {
  std::vector<std::int64_t> ends;  // ascending, the last one the sequence's

  std::int64_t sequence() const { return ends.empty() ? 0 : ends.back(); }
  std::int64_t count() const { return static_cast<std::int64_t>(ends.size()); }
  span at(std::int64_t index) const;
};

// The two chunks of a document that a rank of `ring` holds in a zigzag.
struct zigzag_chunks {
  span first, second;
};
zigzag_chunks zigzag(span document, std::int64_t ring, std::int64_t rank);

// The list of a rank of a ring: zigzag in each document, or contiguous.
rows zigzag_rows(const documents& of, std::int64_t ring, std::int64_t rank);
rows contiguous_rows(std::int64_t sequence, std::int64_t ranks, std::int64_t rank);

}  // namespace velo::sched
