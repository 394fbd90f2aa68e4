// Angles in double, rounded once.
#include "rotary_table.hpp"

#include <cmath>

namespace pretrain {

void rotary_table::plan(arena& from, const model_settings& model, std::int64_t sequence) {
  sequence_ = sequence;
  width_ = model.head_dim();
  cosines_ = reinterpret_cast<float*>(from.take(sequence * width_ * 4));
  sines_ = reinterpret_cast<float*>(from.take(sequence * width_ * 4));
}

void rotary_table::fill(const model_settings& model) {
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

}  // namespace pretrain
