// Angles in double, rounded once.
#include "examples/decoder/model/rotary_table.hpp"

#include <cmath>

namespace decoder {

rotary_table::rotary_table(run_memory& from, const model_settings& model, std::int64_t sequence)
    : sequence_(sequence),
      width_(model.head_dim()),
      memory_(from.keep(2 * sequence * width_ * 4, VELO_PURPOSE_PARAMETER)),
      cosines_(memory_.floats()),
      sines_(cosines_ + sequence * width_) {
  for (std::int64_t p = 0; p < sequence_; ++p) {
    for (std::int64_t i = 0; i < width_; ++i) {
      const auto pair = static_cast<double>(i % (width_ / 2));
      const double wavelength = std::pow(model.rope_theta, 2 * pair / static_cast<double>(width_));
      const double angle = static_cast<double>(p) / wavelength;
      cosines_[p * width_ + i] = static_cast<float>(std::cos(angle));
      sines_[p * width_ + i] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace decoder
