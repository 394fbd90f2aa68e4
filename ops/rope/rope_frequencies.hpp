// The tables of a rotary embedding: cosines and sines of positions times frequencies.
//
//   cos[p, i] = m cos(position[p] f[i])       sin[p, i] = m sin(position[p] f[i])
//
// Frequencies and their scaling are worked out in double, once a call; so are angles and their
// functions, rounded once to float32. A slice is some positions. Bytes: one write of both tables.
// Bound: the functions, about 3 ns a pair of features. Not hot: once a step.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// Frequencies are padded to a multiple of a block, with any numbers.
inline constexpr int64_t frequency_block = 16;

struct rope_table_row {
  double position;
  const double* frequency;
  int64_t pairs;
  double factor;
  float* cos;
  float* sin;
  bool interleaved;  // a number stands twice in succession, not half a row apart
};

struct rope_frequencies_kernels {
  void (*table_row)(const rope_table_row&);
};
extern const kernel_list rope_frequencies_kernel_list;

}  // namespace velo::ops
