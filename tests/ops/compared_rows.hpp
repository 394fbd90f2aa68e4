// The rows of a large product that a test compares with its own formula: all of them.
//
// Under a sanitizer the formulas take most of the time without testing velo. There a product is
// still computed whole, and every eighth row of it is compared, the last among them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace velo::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t rows_from_one_compared_to_the_next = 8;
#else
constexpr std::int64_t rows_from_one_compared_to_the_next = 1;
#endif

inline std::int64_t next_compared(std::int64_t row, std::int64_t rows) {
  const std::int64_t last = rows - 1;
  return row < last ? std::min(row + rows_from_one_compared_to_the_next, last) : rows;
}

}  // namespace velo::testing
