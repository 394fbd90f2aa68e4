// What a layer costs one rank: seconds of its forward and its gradients, bytes that it keeps, how
// many parameters it has, under a layout and for one micro-batch.
//
// Time. Products take their operations over the profile's rate, or the bytes of their matrices over
// the memory's rate, whichever is longer; each of the two gradients of a product takes what its
// forward takes. Attention takes half of a full matrix of scores (causal), 2.5 times in its
// backward (Dao, FlashAttention-2, 2023). What works element by element moves every kept tensor
// twice.
//
// Tensor and sequence parallelism gather and scatter the activations once each before and behind
// attention and feed-forward (Korthikanti et al., Reducing Activation Recomputation in Large
// Transformer Models, 2022); context parallelism passes keys and values around a ring (Liu et al.,
// Ring Attention, 2023); experts get their tokens by two all-to-alls.
//
// Kept activations are counted tensor by tensor as Korthikanti et al. do, two bytes an element: for
// a layer of theirs (no gate, dropout, four times as wide, no fused attention) it comes to their s
// b h (34 + 5 a s / h). Biases are left out.
#pragma once

#include "sched/tune/job.hpp"

namespace velo::sched::tune {

// Of a layer, of the embedding, of the output, or of all of a stage.
struct part {
  double forward = 0, input = 0, weight = 0;  // seconds for a micro-batch
  double hidden = 0;      // seconds that a forward hides beside a backward: exchanges of experts
  double kept = 0;        // bytes of activations
  double remade = 0;      // bytes that a backward makes again and lets go, at most at a time
  double parameters = 0;  // of a rank, but for experts
  double expert_parameters = 0;

  double seconds() const { return forward + input + weight; }
  part& operator+=(const part& more);
};

struct parts {
  part dense, moe, embedding, output;
  double message_bytes = 0;    // from stage to stage
  double message_seconds = 0;  // the same in time
  double gathered_bytes = 0;   // buffers of tensor, context and expert parallelism

  const part& layer(const model& of, std::int64_t index) const {
    return of.has_experts(index) ? moe : dense;
  }
};

parts parts_of(const job& what, const velo_tuning_layout& layout);

// A ring or a tree over `size` ranks that lie `stride` apart: time for every rank to get, or give,
// `bytes` of the others.
double collective_seconds(const profile& of, std::int64_t size, std::int64_t stride, double bytes);

// Parameters of the whole model, and operations of a step that it needs.
double parameters_of(const model& of);
double operations_of(const job& what);  // three times its forward's

}  // namespace velo::sched::tune
