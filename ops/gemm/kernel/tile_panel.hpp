// One panel of packed B against some rows of A on the tile registers of a processor: products of
// bf16 run on them where there are any.
//
// A comes in strips of 32 rows: for every step of 32 of the depth two tiles of 16 rows. Sums of a
// strip and a panel form one square of 32 x 32 floats. Products of matrices keep each square
// contiguous and finish it right after its last pass, while it is in cache.
#pragma once

#include <stdint.h>

#include "ops/gemm/kernel/output_block.hpp"

namespace velo::ops {

constexpr int tile_side = 32;  // of a square of sums: rows of a strip, columns of a panel

struct tile_panel {
  const char* a;                   // first strip
  int64_t a_row, a_step, a_strip;  // bytes from row to row, step to step, strip to strip
  const char* b;                   // steps of 16 rows of pairs, `width` pairs each
  const char* next_b;              // the panel read next, to prefetch; null when unknown
  int width;                       // 16 or 32
  int rows, steps;
  float* sums;          // first square
  int64_t ld_sums;      // floats between its rows
  int64_t square;       // floats from the square of a strip to the next one's; 0: two alternate
  bool first, last;     // pass
  output_block output;  // of the first strip, in the last pass; its `rows` are ignored

  // Rows of the last strip beyond `rows` are read and must be zero or finite.
};

}  // namespace velo::ops
