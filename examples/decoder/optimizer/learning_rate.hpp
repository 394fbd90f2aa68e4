// The learning rate of a step: a linear warm-up, then half a cosine down to a fraction of the peak.
#pragma once

#include <algorithm>
#include <cmath>

#include "examples/decoder/settings.hpp"

namespace decoder {

// `step` counts from 0. The last warm-up step has the full rate, the last step of the run
// the final one.
inline double learning_rate(std::int64_t step, double peak, const schedule_settings& s) {
  if (step < s.warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
  const auto length = static_cast<double>(std::max<std::int64_t>(1, s.steps - s.warmup));
  const double done = std::min(1.0, static_cast<double>(step + 1 - s.warmup) / length);
  constexpr double pi = 3.141592653589793;
  return peak * (s.final_fraction + (1 - s.final_fraction) * 0.5 * (1 + std::cos(pi * done)));
}

}  // namespace decoder
