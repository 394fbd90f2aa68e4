// Rows of a mask in plain loops.
#include "ops/attention/generate_mask.hpp"

namespace velo::ops::reference {
namespace {

void fill(const mask_row& x) {
  for (int64_t j = 0; j < x.columns; ++j) x.to[j] = j < x.first || j >= x.last;
}

}  // namespace

extern const generate_mask_kernels generate_mask = {fill};

}  // namespace velo::ops::reference
