// The window of the training text for each sequence of each step: a function of seed and number.
//
// An epoch visits all windows in its own order. Any window is computed without the ones before it,
// so a run resumes anywhere and stores no order. Constant time and no memory.
#pragma once

#include <cstdint>

namespace decoder {

// The order in which an epoch visits its `count` windows: a permutation.
class epoch_order {
 public:
  epoch_order(std::int64_t count, std::int64_t seed) : count_(count), seed_(seed) {}

  std::int64_t count() const { return count_; }
  std::int64_t at(std::int64_t number) const;  // the place of the run's number-th window

 private:
  std::int64_t count_, seed_;
};

// Windows of one text without documents. An epoch cuts it into a grid of windows, shifted by its
// own phase: every byte is seen about once an epoch, and no two epochs cut the text alike.
class windows {
 public:
  // The text must be at least one window long.
  windows(std::int64_t text_bytes, std::int64_t window_bytes, std::int64_t seed);

  std::int64_t per_epoch() const { return order_.count(); }
  std::int64_t begin(std::int64_t number) const;  // where the run's number-th window begins

 private:
  std::int64_t window_, seed_;
  epoch_order order_;
  std::int64_t slack_;
};

}  // namespace decoder
