// Angles in double, rounded once.
#include "examples/decoder/model/attention/rotary_table.hpp"

#include <cmath>

namespace decoder {

rotary_table::rotary_table(run_memory& from, const model_settings& model,
                           const std::vector<std::int64_t>& positions)
    : rows_(static_cast<std::int64_t>(positions.size())),
      width_(model.rotated_dim()),
      are_neighbors_(model.is_latent()),
      memory_(from.keep(2 * rows_ * width_ * 4, VELO_PURPOSE_PARAMETER)),
      cosines_(memory_.floats()),
      sines_(cosines_ + rows_ * width_) {
  float *cosine = cosines_, *sine = sines_;
  for (const std::int64_t position : positions) {
    for (std::int64_t i = 0; i < width_; ++i) {
      const auto pair = static_cast<double>(are_neighbors_ ? i / 2 : i % (width_ / 2));
      const double wavelength = std::pow(model.rope_theta, 2 * pair / static_cast<double>(width_));
      const double angle = static_cast<double>(position) / wavelength;
      *cosine++ = static_cast<float>(std::cos(angle));
      *sine++ = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace decoder
