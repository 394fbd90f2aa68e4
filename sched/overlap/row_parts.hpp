// How the rows of a matrix are divided among ranks, and the lists of rows that calls have.
//
// A list has a count for each rank, in units of the first dimension of a tensor; some may be 0.
// All ranks have the same list, which its hash makes sure of. Invariant: one rank's rows follow
// another's, and together they are all rows. Cost: a pass over the list for each question.
#pragma once

#include <cstdint>

#include "core/round_up.hpp"
#include "velo/introspect.h"

namespace velo::sched {

// Some rows of a matrix.
struct row_range {
  std::int64_t begin, count;

  std::int64_t end() const { return begin + count; }
};

class row_parts {
 public:
  // As many rows for each rank; the last ranks may have fewer.
  row_parts(std::int64_t rows, int ranks)
      : rows_(rows), ranks_(ranks), each_(core::ceil_div(rows, ranks)) {}
  // list: the rows of each rank, in units of `unit`; must outlive this object.
  row_parts(const std::int64_t* list, int ranks, std::int64_t unit);

  row_range of(int rank) const;
  int rank_of(std::int64_t row) const;  // the rank that has a row
  std::int64_t most() const;            // rows of the rank that has the most
  std::int64_t rows() const { return rows_; }
  int ranks() const { return ranks_; }
  bool is_listed() const { return list_ != nullptr; }

 private:
  std::int64_t rows_ = 0;
  int ranks_;
  std::int64_t each_ = 0, unit_ = 1;
  const std::int64_t* list_ = nullptr;
};

// Throws ARGUMENT unless the list has a count from 0 to 2^40 for each rank. argument: "args.rows".
// what: that which is counted.
void check_list(const velo_ints& list, int ranks, const char* argument, const char* what = "rows");
std::int64_t sum_of(const velo_ints& list);
std::uint64_t hash_of(const velo_ints& list);  // never 0

}  // namespace velo::sched
