// rope_frequencies' tables by the library's functions: the reference for the other kernels.
#include <cmath>

#include "ops/rope/rope_frequencies.hpp"

namespace velo::ops::reference {
namespace {

void table_row(const rope_table_row& s) {
  for (std::int64_t i = 0; i < s.pairs; ++i) {
    const double angle = s.position * s.frequency[i];
    const std::int64_t first = s.interleaved ? 2 * i : i;
    const std::int64_t second = s.interleaved ? first + 1 : i + s.pairs;
    s.cos[first] = s.cos[second] = static_cast<float>(s.factor * std::cos(angle));
    s.sin[first] = s.sin[second] = static_cast<float>(s.factor * std::sin(angle));
  }
}

}  // namespace

extern const rope_frequencies_kernels rope_frequencies = {table_row};

}  // namespace velo::ops::reference
