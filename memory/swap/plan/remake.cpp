// Inputs and outputs of stages, from the visits of buffers.
#include "memory/swap/plan/remake.hpp"

#include <algorithm>

namespace velo::memory {

swap_remake::swap_remake(const swap_stages& step)
    : step_(step), inputs_(step.count()), outputs_(step.count()) {
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    const swap_stages::buffer& b = step.buffers[i];
    outputs_[b.first].push_back(static_cast<std::int32_t>(i));
    for (const swap_stages::visit& v : b.visits)
      if (v.stage != b.first) inputs_[v.stage].push_back(static_cast<std::int32_t>(i));
  }
}

// Whether no stage in [used, now) writes the buffer, apart from the stage in which its life begins
// and which makes it.
bool swap_remake::is_as_used(std::int32_t buffer, std::int32_t used, std::int32_t now) const {
  const swap_stages::buffer& b = step_.buffers[buffer];
  return std::none_of(b.visits.begin(), b.visits.end(), [&](const swap_stages::visit& v) {
    return v.writes && v.stage >= used && v.stage < now && v.stage != b.first;
  });
}

}  // namespace velo::memory
