// The exchanges of a block of two matrices that tp = X * Y ranks cut both ways, as
// examples/decoder's hidden_parallel carries them out.
//
// Rows of the residual stream are cut along x and its columns along y; between the two matrices
// rows are cut along y and columns along x. The forward gathers all rows of the stream along x,
// scatters the sums of the first product along y, gathers the second one's inputs along y, and
// scatters its sums along x. The gradient takes the way back, and gathers the inputs of both
// products again. The norm before the block sums a float32 of each row along y, in either pass.
// Nothing hides these exchanges but the profile's tp_overlap. O(1).
#pragma once

#include "sched/tune/job.hpp"

namespace velo::sched::tune {

// A block on a rank.
struct cut_block {
  std::int64_t x, y;    // ranks along either dimension; those along y lie x apart
  double column_bytes;  // of a column of all rows
  double stream_rows;   // of the residual stream
  double hidden;        // columns of the residual stream
  double first, last;   // columns of the first product's outputs, and of the second one's inputs
};

// Exchanged for a micro-batch: bytes in or out of a rank.
struct tensor_use {
  double forward_bytes = 0, gradient_bytes = 0;
  double forward_seconds = 0, gradient_seconds = 0;

  tensor_use& operator+=(const tensor_use& more);
};

tensor_use exchanged_both_ways(const profile& of, const cut_block& block);

}  // namespace velo::sched::tune
