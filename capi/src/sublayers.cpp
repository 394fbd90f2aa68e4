// Entries of velo/sublayers.h.
#include "velo/sublayers.h"

#include <algorithm>

#include "capi/src/boundary.hpp"
#include "core/handle/guard.hpp"
#include "sched/schedule/sublayers.hpp"

using namespace velo;
using core::fail;
using core::text;

extern "C" {

velo_status velo_sublayer_plan(int32_t forward_layers, int32_t backward_layers, int64_t capacity,
                               velo_sublayer_step* steps, int64_t* count) {
  return core::guard("velo_sublayer_plan", [&] {
    const auto require = [](std::int64_t value, std::int64_t most, const char* argument) {
      if (value < 0 || value > most)
        fail(VELO_ERR_ARGUMENT, argument, core::concat("0 to ", most), core::number(value));
    };
    constexpr std::int64_t most_layers = 4096;
    capi::required(count, "count");
    require(forward_layers, most_layers, "forward_layers");
    require(backward_layers, most_layers, "backward_layers");
    require(capacity, INT64_MAX, "capacity");
    if (capacity > 0) capi::required(steps, "steps");
    const auto all = sched::sublayer_plan(forward_layers, backward_layers);
    const auto size = static_cast<std::int64_t>(all.size());
    std::copy_n(all.begin(), std::min(capacity, size), steps);
    *count = size;
  });
}
}
