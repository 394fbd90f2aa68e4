// The activations that a micro-batch keeps of a layer with experts between its passes, beside
// `gates` and `gated` of layer_activations, which then have the experts' rows.
//
// A row is a token at one of its experts; rows lie by expert. Choices, their weights and the counts
// are small and are kept whatever is recomputed: so each pass has the same rows in the same order.
#pragma once

#include <cstdint>
#include <velo/velo.hpp>

#include "examples/decoder/memory/run_memory.hpp"

namespace decoder {

struct expert_activations {
  buffer logits;   // [own rows, experts], of the rows that this rank gives to experts
  buffer weights;  // f32 [own rows, choices]
  buffer choices;  // i32, as weights
  buffer counts;   // i64 [experts], this rank's choices by expert
  buffer places;   // i32, as weights: the row of each choice; of a rank that has all experts
  buffer held;     // i64 [experts of this rank], their rows; of a dispatcher or of cut experts
  // Choices and weights of the rows of all tensor ranks, where these cut each expert.
  buffer all_choices, all_weights;
  buffer input;   // [expert rows, hidden]
  buffer output;  // [expert rows, hidden]
  // The shared expert's, as `gates` and `gated` of a layer without experts.
  buffer shared_gates, shared_gated;
  // For weight gradients that are deferred; `gates` has the gradient of the products before it.
  buffer logits_gradient, output_gradient;
  // Tensors that one part of a pass leaves to a later one (expert_block), with output_gradient.
  buffer input_gradient;  // [expert rows, hidden]
  buffer dweights;        // as weights
  buffer branch;          // [rows, hidden]: what the block adds to the residual stream or, in the
                          // backward pass, to its gradient
  buffer shared_branch;   // the same of the shared expert
  buffer own_branch;      // the part of it that this rank writes, where tensor ranks share rows
  std::int64_t rows = 0;  // at this rank's experts
  // Above this multiple of the mean load a rank recomputes what its experts compute; 0: always.
  double recompute_load = 0;
  // Whether a dispatcher moves rows, of experts that are dealt out or drop choices.
  bool dispatched = false;
  velo::routing routing;  // of that dispatcher; set until the backward pass is done
};

}  // namespace decoder
