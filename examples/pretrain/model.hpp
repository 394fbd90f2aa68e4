// The language model: embedding, decoder layers, norm, head and loss, forward and backward.
//
// All buffers lie in one allocation, made here for the largest batch; a pass allocates nothing. The
// logits are computed in the model's dtype, and the backward pass turns them into their gradient in
// place, so they exist once.
#pragma once

#include <vector>

#include "decoder_layer.hpp"

namespace pretrain {

class model {
 public:
  // Works on at most `largest` sequences; their length is always `largest.length`. Weights must
  // outlive the model.
  model(const velo::context& context, const weights& from, const model_settings& settings,
        batch_shape largest, bool training);

  // To be called whenever the weights have changed: lays them out anew for the products.
  void refresh(const velo::stream_ref& stream);

  // Symbols [sequences, length], at the start of these buffers. A target below zero does not count.
  std::int32_t* inputs() const { return inputs_; }
  std::int32_t* targets() const { return targets_; }

  // Logits of every position: [sequences x length, vocab].
  velo::tensor_view forward(const velo::stream_ref& stream, std::int64_t sequences);

  // After forward: the sum, or the mean, of the losses of all targets that count, in nats.
  double loss(const velo::stream_ref& stream, std::int64_t sequences, velo::reduction how);

  // After a mean loss: adds `scale` times its gradient to the weights' gradients.
  void backward(const velo::stream_ref& stream, std::int64_t sequences, double scale);

 private:
  void plan(arena& from);
  batch_shape batch_of(std::int64_t sequences) const { return {sequences, largest_.length}; }
  velo::tensor_view rows(std::byte* data, std::int64_t sequences, std::int64_t width) const;

  model_settings settings_;
  batch_shape largest_;
  bool training_;
  velo_dtype type_;
  std::vector<decoder_layer> layers_;
  linear head_;
  velo::tensor_view embedding_, embedding_gradient_, gain_, gain_gradient_;

  velo::managed_tensor memory_;
  rotary_table angles_;
  workspace space_;
  std::int32_t *inputs_ = nullptr, *targets_ = nullptr;  // [tokens]
  std::byte* embedded_ = nullptr;                        // [tokens, hidden]
  std::byte* decoded_ = nullptr;            // [tokens, hidden]; the last layer's, not planned here
  std::byte* normed_ = nullptr;             // [tokens, hidden]
  std::byte* logits_ = nullptr;             // [tokens, vocab]
  std::byte* gradient_ = nullptr;           // [tokens, hidden]
  float *rstd_ = nullptr, *lse_ = nullptr;  // [tokens]
  float *loss_ = nullptr, *loss_gradient_ = nullptr;  // one each
};

}  // namespace pretrain
