// The activations that a micro-batch keeps of latent attention between its passes, beside
// `projected` of layer_activations, which then has the rotated queries alone.
#pragma once

#include "examples/decoder/memory/run_memory.hpp"

namespace decoder {

struct latent_activations {
  // [rows, q_lora_rank] and [rows, kv_lora_rank] of the residual stream, before and after their
  // norms; without a rank of queries these have none.
  buffer query_low, query_normed, key_low, key_normed;
  buffer expanded;  // [tokens, heads * (qk_nope_head_dim + v_head_dim)]: keys unrotated, and values
  buffer keys;      // [tokens, heads * head_dim]; the last qk_rope_head_dim of a head are rotated
  buffer query_rstd, key_rstd;  // f32 [rows]
  // Gradients between attention's and the projections' operators; for weight gradients that are
  // deferred these stay, and so do those of query_low, key_low and of the rotated part of keys.
  buffer expanded_gradient, keys_gradient;
  buffer query_low_gradient, key_low_gradient, rotated_gradient;

  // Calls f(buffer) for each that the forward pass saves.
  template <class F>
  void each_kept(F&& f) {
    for (buffer* one : {&query_low, &query_normed, &key_low, &key_normed, &expanded, &keys,
                        &query_rstd, &key_rstd})
      f(*one);
  }
  // Calls f(buffer) for each other one that deferred weight gradients may read.
  template <class F>
  void each_gradient(F&& f) {
    for (buffer* one :
         {&expanded_gradient, &query_low_gradient, &key_low_gradient, &rotated_gradient})
      f(*one);
  }
};

}  // namespace decoder
