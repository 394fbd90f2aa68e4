// Which window of the training text each sequence of each step sees: a function of seed and number.
//
// An epoch lays a grid of windows over the text, shifted by a phase of its own, and visits them in
// an order of its own, so that every byte is seen about once an epoch and no two epochs cut the
// text alike. Any window can be found without the ones before it: a run resumes anywhere, and no
// order is stored. Constant time and no memory.
#pragma once

#include <cstdint>
#include <string_view>

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

// Writes one sequence: inputs are `bos` and all bytes but the last, targets are the bytes.
void write_sequence(std::string_view bytes, std::int32_t* inputs, std::int32_t* targets);

}  // namespace decoder
