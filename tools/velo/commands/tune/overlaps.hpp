// How much of an exchange the work beside it hides, between two ranks of one thread on this
// machine: the overlaps of a profile for velo tune.
#pragma once

#include <cstdint>

namespace command {

// The sizes of the layer that is timed: of all rows, and of one rank's heads and inner width.
struct overlap_sizes {
  std::int64_t rows, hidden, inner, heads, kv_heads, head_dim;
  bool wide;  // float32, else bfloat16
};

// Hidden parts of the seconds of exchanges, from 0 to 1.
struct overlaps {
  double tensor, context, data;
};

// Takes about two seconds. Throws velo::error, or std::runtime_error with what a rank threw.
overlaps measured_overlaps(const overlap_sizes& of);

}  // namespace command
