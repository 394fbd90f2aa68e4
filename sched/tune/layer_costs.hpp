// The costs of a layer on one rank: seconds of its forward and its gradients, bytes that it keeps,
// and parameters, under a layout and for one micro-batch.
//
// Time. A product takes its operations over the profile's rate, or the bytes of its matrices over
// the memory's rate, whichever is longer; each of its two gradients takes what the forward takes.
// Attention takes half of a full matrix of scores (causal), and 2.5 times that in its backward
// (Dao, FlashAttention-2, 2023). Element-wise work moves every kept tensor twice.
//
// Tensor and sequence parallelism gather and scatter the activations once each before and behind
// attention and feed-forward (Korthikanti et al., Reducing Activation Recomputation in Large
// Transformer Models, 2022); with sequence parallelism the backward gathers their inputs again, for
// the gradients of weights. Context parallelism computes and exchanges what the slowest rank of
// its sequence plan does (sched/tune/context_cost.hpp), of each step's exchange as much as it takes
// longer than the step's scores; experts get their tokens by two all-to-alls.
//
// In two dimensions, tp = X * Y, matrices exchange what sched/tune/tensor_exchange.hpp says, and
// the Y ranks that cut the hidden dimension are further ranks of the context.
//
// A layout with splits of sequences has the costs of one split: of its tokens, whose queries see
// half of the sequence on average. `shared` is what the splits of a micro-batch have together.
//
// In slices an exchange of tensor parallelism travels while the product next to it computes. Of T
// seconds beside a product of P, in s slices, T / s are exposed, the first or the last slice's, and
// (T - P) (s - 1) / s where the product is the shorter; each slice has a message's latency.
//
// Kept activations are counted tensor by tensor as Korthikanti et al. do, two bytes an element. For
// a layer of theirs (no gate, dropout, four times as wide, no fused attention) the sum is their s b
// h (34 + 5 a s / h). Biases are omitted.
#pragma once

#include "sched/tune/full_layout.hpp"
#include "sched/tune/job.hpp"
#include "sched/tune/tensor_exchange.hpp"

namespace velo::sched::tune {

// The cost of a layer, of the embedding, of the output, or of a whole stage.
struct layer_cost {
  double forward = 0, input = 0, weight = 0;  // seconds for a micro-batch
  double hidden = 0;                          // seconds of experts' all-to-alls that an FB hides
  double kept = 0;                            // bytes of activations
  double remade = 0;                          // bytes that a backward recomputes, at most at a time
  double shared = 0;                          // bytes of keys that splits of a sequence share
  double parameters = 0;                      // of a rank, but for experts
  double expert_parameters = 0;

  double seconds() const { return forward + input + weight; }
  layer_cost& operator+=(const layer_cost& more);
};

// What a layer's attention of a micro-batch takes where ranks share its sequence.
struct context_use {
  double cells = 0;                                  // of the forward, times heads
  double forward_bytes = 0, gradient_bytes = 0;      // exchanged
  double forward_exposed = 0, gradient_exposed = 0;  // seconds that no computation hides
  double kept_bytes = 0;                             // of other ranks, for the gradient
};

struct layer_costs {
  layer_cost dense, moe, embedding, output;
  context_use context;
  tensor_use tensor;
  double message_bytes = 0;    // from stage to stage
  double message_seconds = 0;  // the same in time
  double gathered_bytes = 0;   // buffers of tensor, context and expert parallelism

  // Whether no layer takes more time or memory than with `other`.
  bool covers(const layer_costs& other) const;

  const layer_cost& layer(const model& of, std::int64_t index) const {
    return of.has_experts(index) ? moe : dense;
  }
};

layer_costs layer_costs_of(const job& training_job, const full_layout& layout);

// The parameters of the whole model, and the operations that a step needs.
double parameters_of(const model& of);
double operations_of(const job& training_job);  // three times its forward's

}  // namespace velo::sched::tune
