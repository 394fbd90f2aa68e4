// The optimizer step: the gradients' global norm, and AdamW with the clip factor folded into it.
//
// Two operator calls update everything: one for the matrices, which decay, one for the norms, which
// do not. Clipping costs no pass over the gradients of its own.
#pragma once

#include "examples/decoder/memory/swapper.hpp"
#include "examples/decoder/model/weights.hpp"

namespace decoder {

class optimizer {
 public:
  explicit optimizer(const optimizer_settings& settings) : settings_(settings) {}

  // Updates the weights whose state `all` has; `number` counts updates from 1. With `away` the
  // state is there, and comes in slices. The norm is that of all: of several ranks each sums its
  // ranges `summed`. Returns the gradients' norm before clipping.
  double step(const member& rank, weights& all, const std::vector<range>& summed, swapper* away,
              std::int64_t number, double learning_rate);

  // Its parts.
  double sum_of_squares(const member& rank, const weights& all,
                        const std::vector<range>& summed) const;
  struct clipping {
    float norm, factor;  // NaN where gradients are not finite
  };
  clipping clip(const member& rank, double sum_of_squares) const;  // that of all ranks
  void update(const member& rank, weights& all, swapper* away, std::int64_t number,
              double learning_rate, float factor);

 private:
  struct state {
    float *first, *second, *master;  // master: or nullptr
  };
  void update(const velo::stream_ref& stream, const weights& all, const state& of,
              std::int64_t origin, std::int64_t begin, std::int64_t end, double decay,
              std::int64_t number, double learning_rate);

  optimizer_settings settings_;
  float factor_ = 1;
};

}  // namespace decoder
