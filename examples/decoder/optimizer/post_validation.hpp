// Optimizer steps of a model in stages that no rank waits for: the setting post_validation.
//
// What a rank has to know of the others - the gradients' norm, the loss that is told, whether
// anybody was interrupted - follows each step through the next one (velo's executor brings it).
// Until then a rank steps as if what it knows were all: unclipped, or not at all where the ranks
// before it alone would be clipped. Then the step stands, or weights and moments come back from a
// copy and the step is done with the factor that is right; one with gradients that are not finite
// is not done.
//
// Sums are kept by rank and added in the order of ranks, so norm, loss and weights have the bits of
// a run that waits. Cost: a copy of what an update writes on every rank but the last stage's, 12
// bytes a parameter in f32 and 14 in bf16, and the time to copy it. With a sharded optimizer a rank
// copies its own part of moments and masters, and all of the weights, which are gathered after
// every step. That is safe as ranks with the same stage measure together, so that all of them step,
// or none does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "examples/decoder/model/data_parallel.hpp"
#include "examples/decoder/model/weights.hpp"
#include "examples/decoder/optimizer/optimizer.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

class post_validation {
 public:
  struct step {
    std::int64_t number;  // from 1
    double learning_rate;
  };
  struct result {
    step of;
    double loss, grad_norm;
    int interrupt;  // a signal that some rank was sent; 0: none
  };

  // shared: nullptr where ranks have no weights in common; sharded: each of them updates a part of
  // them. All must outlive it.
  post_validation(member& rank, weights& all, optimizer& with, const exchange* shared,
                  bool sharded);

  // What the next measure is of.
  void announce(const step& next) { next_ = next; }
  // Before the first gradient of a step: until here those of the step before may be needed.
  void clear_gradients();

  // As velo_executor_validation has them; step and roll_back without what is made of the weights.
  std::uint64_t state_size() const;
  void measure(double loss, void* state);
  double decide(const void* states, std::int32_t known, std::int32_t ranks);
  void update(double factor, bool final);
  void roll_back();

  // What the weights of an update are gathered by; nullptr: they are there.
  const exchange* gathering() const { return sharded_ ? shared_ : nullptr; }

  // Of the step before the last; of the last, where it is settled.
  std::optional<result> before() const { return before_; }
  std::optional<result> last() const { return last_; }

 private:
  struct measured {  // by a rank
    double sum_of_squares, loss, interrupt;
  };

  member& rank_;
  weights& weights_;
  optimizer& optimizer_;
  const exchange* shared_;
  const bool sharded_;
  std::vector<buffer> copies_;  // of weights_.updated()
  step next_{}, of_{};
  bool cleared_ = false;
  std::optional<result> before_, last_;
};

}  // namespace decoder
