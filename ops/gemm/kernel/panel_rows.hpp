// Rows of a matrix in panels (ops/gemm/epilogue.hpp), copied back side by side.
//
// Whole lines are written around the cache: where a panel's rows are not lines, those of two panels
// at a time. Invariant: nothing but rows [first, end) is written. Cost: memory speed.
#pragma once

#include <stdint.h>

namespace velo::ops {

struct panel_rows {
  const char* from;
  int64_t rows;              // of the matrix
  int64_t panel, row_bytes;  // bytes of a panel's row and of a whole row
  int64_t first, end;        // rows to copy
  char* to;                  // row `first`
  int64_t ld_to;             // bytes
};

}  // namespace velo::ops
