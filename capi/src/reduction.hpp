// Reads how elements are combined, for the entries of group.h and collective.h.
#pragma once

#include <cmath>

#include "capi/src/boundary.hpp"
#include "velo/group.h"

namespace velo::capi {

inline velo_reduction read_reduction(const velo_reduction* given) {
  constexpr std::uint32_t size_of_1_0 = 32;
  static_assert(sizeof(velo_reduction) >= size_of_1_0);
  const velo_reduction sum = VELO_REDUCTION_INIT;
  if (given == nullptr) return sum;
  const velo_reduction how = read_struct(given, size_of_1_0, "reduction", sum);
  if (how.op < VELO_REDUCE_SUM || how.op > VELO_REDUCE_CUSTOM)
    core::fail(VELO_ERR_ARGUMENT, "reduction.op", "a VELO_REDUCE", core::text("%d", how.op));
  if (!std::isfinite(how.scale))
    core::fail(VELO_ERR_ARGUMENT, "reduction.scale", "a finite number",
               core::text("%g", how.scale));
  if (how.op == VELO_REDUCE_CUSTOM && how.fn == nullptr)
    core::fail(VELO_ERR_NULL, "reduction.fn", "a function that combines", "NULL");
  return how;
}

}  // namespace velo::capi
