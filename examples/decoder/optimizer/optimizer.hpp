// The optimizer step: the gradients' global norm, and AdamW with the clip factor folded into it.
//
// Two operator calls update everything: one for the matrices, which decay, one for the norms, which
// do not. Clipping takes no pass over the gradients of its own. Where the masters are residuals, a
// part of the weights at a time is merged, updated and split again, while it is in cache.
#pragma once

#include "examples/decoder/memory/swapper.hpp"
#include "examples/decoder/weights/weights.hpp"

namespace decoder {

class optimizer {
 public:
  explicit optimizer(const optimizer_settings& settings) : settings_(settings) {}

  // Updates the weights whose state `all` holds; `number` counts updates from 1. With `swap` the
  // state is swapped out, and comes in slices. The norm is that of all ranks: each sums its ranges
  // `summed`. Returns the gradients' norm before clipping.
  double step(const member& rank, weights& all, const std::vector<range>& summed, swapper* swap,
              std::int64_t number, double learning_rate);

  // The parts of a step.
  double sum_of_squares(const member& rank, const weights& all,
                        const std::vector<range>& summed) const;
  struct clipping {
    float norm, factor;  // NaN where gradients are not finite
  };
  clipping clip(const member& rank, double sum_of_squares) const;  // the sum of all ranks
  void update(const member& rank, weights& all, swapper* swap, std::int64_t number,
              double learning_rate, float factor);

 private:
  struct state {
    std::byte *first, *second;
    float* master;  // or nullptr
  };
  struct number_and_rate {
    std::int64_t number;
    double learning_rate, decay;
  };
  void update(const velo::stream_ref& stream, const weights& all, const state& of,
              std::int64_t origin, std::int64_t begin, std::int64_t end,
              const number_and_rate& how) const;
  void update_part(const velo::stream_ref& stream, const weights& all, const state& of,
                   std::int64_t origin, const range& part, const velo::tensor_view& weight,
                   const number_and_rate& how) const;

  optimizer_settings settings_;
  float factor_ = 1;
};

}  // namespace decoder
