// The backward pass: the loss, the head, the layers from the last to the first, the embedding.
#include <utility>

#include "examples/decoder/memory/swapper.hpp"
#include "examples/decoder/model/data_parallel.hpp"
#include "examples/decoder/model/gradients.hpp"
#include "examples/decoder/model/model.hpp"

namespace decoder {

void model::backward(const velo::stream_ref& stream, activations& of, double scale) {
  backward_stage(stream, of, scale, {}, false);
}

buffer model::backward_stage(const velo::stream_ref& stream, activations& of, double scale,
                             buffer gradient, bool deferred) {
  const pass now = begin(stream, of);
  if (ends_) gradient = head_backward(now, of, scale, deferred);
  for (std::size_t i = depth_; i-- > 0;) layer_backward(now, of, i, gradient, deferred);
  if (!begins_) return gradient;
  if (deferred)
    of.embedded_gradient = std::move(gradient);
  else
    embed_backward(now, of, gradient);
  return {};
}

// Returns the gradient of the last layer's output.
buffer model::head_backward(const pass& now, activations& of, double scale, bool deferred) {
  const std::int64_t hidden = settings_.hidden, tokens = now.batch.tokens();
  const velo::tensor_view logits = rows(now, of.logits, settings_.vocab);
  const velo::tensor_view targets(of.targets(), {tokens});
  loss_gradient_ = static_cast<float>(scale);
  velo::cross_entropy_backward(now.stream, velo::cross_entropy_backward_args()
                                               .dloss(velo::tensor_view(&loss_gradient_, {}))
                                               .logits(logits)
                                               .targets(targets)
                                               .lse(velo::tensor_view(of.lse.floats(), {tokens}))
                                               .dlogits(logits));
  of.lse = {};
  if (!deferred) {
    head_->weight_gradient(now.stream, rows(now, of.normed, hidden), logits);
    if (of.reducer) of.reducer->head_ready();
    of.normed = {};
  }
  buffer through =
      memory_.take(now.room.tokens() * hidden * (type_.bits / 8), VELO_PURPOSE_WORKSPACE);
  const velo::tensor_view gradient = rows(now, through, hidden);
  head_->input_gradient(now.stream, logits, gradient);
  if (!deferred) of.logits = {};
  norm_backward(now, rows(now, of.residual[depth_], hidden), gain_, of.rstd, gradient,
                gain_gradient_);
  of.residual[depth_] = {};
  of.rstd = {};
  return through;
}

void model::embed_backward(const pass& now, activations& of, const buffer& gradient) const {
  embedding_backward(now, velo::tensor_view(of.inputs(), {now.batch.tokens()}),
                     rows(now, gradient, settings_.hidden), embedding_gradient_);
}

void model::weight_gradients(const velo::stream_ref& stream, activations& of) const {
  const pass now = begin(stream, of);
  if (ends_) {
    head_->weight_gradient(stream, rows(now, of.normed, settings_.hidden),
                           rows(now, of.logits, settings_.vocab));
    if (of.reducer) of.reducer->head_ready();
    of.normed = {};
    of.logits = {};
  }
  for (std::size_t i = depth_; i-- > 0;) {
    layers_[i].weight_gradients(now, of.layers[i]);
    if (of.reducer) of.reducer->layer_ready(first_ + i);
  }
  if (begins_) embed_backward(now, of, of.embedded_gradient);
  of.embedded_gradient = {};
}

// Waits for the swapped activations of a layer, and begins to copy back those of the layer below.
void model::bring_back(activations& of, std::size_t layer) const {
  if (of.swap == nullptr) return;
  const auto needed = [&](std::size_t i) { return static_cast<std::size_t>(recompute_[i].first); };
  of.each_kept(needed(layer), [&](buffer& each) { of.swap->in(each); });
  of.each_kept(needed(layer), [&](buffer& each) { of.swap->wait(each); });
  if (layer > 0) of.each_kept(needed(layer - 1), [&](buffer& each) { of.swap->in(each); });
}

// The last layer of a group that is recomputed from the group's input recomputes the others.
void model::layer_backward(const pass& now, activations& of, std::size_t layer, buffer& gradient,
                           bool deferred) const {
  bring_back(of, layer);
  const auto first = static_cast<std::size_t>(recompute_[layer].first);
  for (std::size_t i = first; i < layer; ++i)
    if (!of.residual[i + 1])
      layers_[i].forward(now, of.residual[i], of.layers[i], of.residual[i + 1]);
  layers_[layer].backward(now, gradient, of.residual[layer], of.layers[layer], deferred);
  of.residual[layer] = {};
  if (of.reducer && !deferred) of.reducer->layer_ready(first_ + layer);
}

}  // namespace decoder
