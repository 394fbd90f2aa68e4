// A tensor that is read as one of a larger shape, by numpy's rule: dimensions are counted from the
// last, and each is the shape's, 1 or missing.
//
// Rows of the shape are all dimensions but the last. Where the tensor has all of them, or none, its
// rows lie at one distance, `ld`; otherwise a list holds where each begins. Cost: the list, a
// division a dimension a row.
#pragma once

#include <cstdint>

#include "core/host/arena.hpp"
#include "ops/operator/tensor.hpp"

namespace velo::ops {

struct broadcast {
  int leading = 0;                      // dimensions of the rows
  std::int64_t sizes[max_rank] = {};    // of the shape
  std::int64_t strides[max_rank] = {};  // of the tensor, 0 where it has one element or none
  bool one_column = false;              // its last dimension is 1
  bool at_one_distance = true;
  std::int64_t ld = 0;  // if so

  // The element of the tensor at which a row of the shape begins.
  std::int64_t row(std::int64_t index) const;
  const std::int64_t* rows(std::int64_t count, core::arena& scratch) const;
};

// Whether it stands for n columns by one row for all rows.
bool is_row(const velo_tensor& t, std::int64_t n);

// Refuses a tensor that does not fit.
broadcast require_broadcast(const velo_tensor& t, const char* field, int rank,
                            const std::int64_t* shape);

}  // namespace velo::ops
