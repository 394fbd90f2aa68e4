// The order of the parts of expert layers.
#pragma once

#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/sublayers.h"

VELO_CPP_BEGIN

// The parts of expert layers in the order of an FB. Writes up to `capacity` steps; returns their
// total number.
inline outcome<int64_t> sublayer_plan(int32_t forward_layers, int32_t backward_layers,
                                      int64_t capacity, velo_sublayer_step* steps) {
  int64_t count = 0;
  const velo_status status =
      VELO_FN(sublayer_plan)(forward_layers, backward_layers, capacity, steps, &count);
  return detail::finish<int64_t>(status, count);
}

VELO_CPP_END
