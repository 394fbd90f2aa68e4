// The window of the training text for each sequence of each step: a function of seed and number.
//
// An epoch cuts the text into a grid of windows, shifted by its own phase, and visits them in its
// own order: every byte is seen about once an epoch, and no two epochs cut the text alike. Any
// window is computed without the ones before it, so a run resumes anywhere and stores no order.
// Constant time and no memory.
#pragma once

#include <cstdint>

namespace decoder {

class windows {
 public:
  // The text must be at least one window long.
  windows(std::int64_t text_bytes, std::int64_t window_bytes, std::int64_t seed);

  std::int64_t per_epoch() const { return per_epoch_; }
  std::int64_t begin(std::int64_t number) const;  // where the run's number-th window begins

 private:
  std::int64_t window_, slack_, per_epoch_, seed_;
};

}  // namespace decoder
