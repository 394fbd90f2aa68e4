// Optimizer steps of a model in stages without a wait for all ranks: the setting post_validation
// (from Zero Bubble Pipeline Parallelism).
//
// The ranks' sums of the gradients' norm, the loss and interrupts follow each step through the next
// one, carried by velo's executor. Until then a rank steps by what it knows: unclipped, or not at
// all where the ranks before it alone would be clipped. Afterwards the step stands, or weights and
// moments are restored from a copy and the step is done again with the right factor; a step whose
// gradients are not finite is not done.
//
// Sums are kept by rank and added in rank order, so norm, loss and weights have the bits of a run
// that waits. Cost: on every rank but the last stage's a copy of the buffers that an update writes,
// 12 bytes a parameter in f32 and 14 in bf16, and the time to copy them. With a sharded optimizer a
// rank copies its own part of moments and masters, and all of the weights, which are gathered after
// every step. That is safe as ranks with the same stage measure together, so that all of them step,
// or none does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "examples/decoder/optimizer/optimizer.hpp"
#include "examples/decoder/parallel/data_parallel.hpp"
#include "examples/decoder/parallel/model_parallel.hpp"
#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/weights/weights.hpp"

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
    int interrupt;  // the signal that a rank received; 0: none
  };

  // `shared` is nullptr where no other rank has these weights; with `sharded` each updates a part
  // of them. All must outlive the object.
  post_validation(member& rank, weights& all, optimizer& with, const model_parallel& parallel,
                  const data_parallel* shared, bool sharded);

  // Names the step that is measured next.
  void announce(const step& next) { next_ = next; }
  // Clears the gradients before the first of a step; those of the step before may be needed until
  // then.
  void clear_gradients();

  // The functions of velo_executor_validation; update and roll_back leave the packing of weights to
  // the caller.
  std::uint64_t state_size() const;
  void measure(double loss, void* state);
  double decide(const void* states, std::int32_t known, std::int32_t ranks);
  void update(double factor, bool final);
  void roll_back();

  // Gathers the weights of an update; nullptr where all are there.
  const data_parallel* gathering() const { return sharded_ ? shared_ : nullptr; }

  // The results of the step before the last, and of the last once it is settled.
  std::optional<result> before() const { return before_; }
  std::optional<result> last() const { return last_; }

 private:
  struct measured {  // of a rank
    double sum_of_squares, loss, interrupt;
  };

  member& rank_;
  weights& weights_;
  optimizer& optimizer_;
  const model_parallel& parallel_;
  const data_parallel* shared_;
  const bool sharded_;
  const std::vector<range> counted_;  // in the gradients' norm
  std::vector<buffer> copies_;        // of weights_.updated()
  step next_{}, of_{};
  bool cleared_ = false;
  std::optional<result> before_, last_;
};

}  // namespace decoder
