// A row copied around the cache, for operators that move rows to anywhere.
#pragma once

#include <stdint.h>

namespace velo::ops {

// Whole multiples of 64 bytes, `to` aligned to them.
struct row_copy {
  const void* from;
  const void* next;  // the row that will be copied after it
  void* to;
  int64_t bytes;
};

}  // namespace velo::ops
