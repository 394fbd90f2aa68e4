// Rows of a block whose columns lie in panels (gemm.hpp), back side by side.
//
// They are written around the cache, in whole lines: where a panel's rows are not lines, those of
// two panels at a time. Invariant: nothing but the rows asked for is written. Cost: memory speed.
#pragma once

#include <stdint.h>

namespace velo::ops {

struct panel_rows {
  const char* block;
  int64_t rows;              // of the block
  int64_t panel, row_bytes;  // bytes of a row: of a panel's, of all
  int64_t first, end;        // rows that are meant
  char* to;                  // row `first`
  int64_t ld_to;             // bytes
};

}  // namespace velo::ops
