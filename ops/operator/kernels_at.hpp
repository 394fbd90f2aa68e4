// Another operator's kernels at the instruction set of the caller's own, for operators that run
// several.
#pragma once

#include <algorithm>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

// Those of the highest instruction set up to `isa`; the reference's for scalar.
template <class Kernels>
const Kernels& kernels_at(const kernel_list& list, core::isa isa) {
  const kernel_entry* last = list.entries + list.count - 1;
  const kernel_entry* found = std::find_if(list.entries, last, [&](const kernel_entry& e) {
    return e.isa <= isa && e.isa != core::isa::scalar;
  });
  return *static_cast<const Kernels*>(found->kernels);
}

}  // namespace velo::ops
