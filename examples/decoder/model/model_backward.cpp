// The backward pass: the loss, the head, the layers from the last to the first, the embedding.
#include <algorithm>
#include <utility>

#include "examples/decoder/memory/swapper.hpp"
#include "examples/decoder/model/gradients.hpp"
#include "examples/decoder/model/model.hpp"
#include "examples/decoder/model/overlap/layer_overlap.hpp"
#include "examples/decoder/model/saved_rows.hpp"
#include "examples/decoder/model/shared_rows.hpp"
#include "examples/decoder/parallel/data_parallel.hpp"

namespace decoder {

void model::backward(const velo::stream_ref& stream, activations& of, double scale) {
  backward_stage(stream, of, scale, {}, false);
}

buffer model::backward_stage(const velo::stream_ref& stream, activations& of, double scale,
                             buffer gradient, bool deferred) {
  if (parallel_->overlap != nullptr && !deferred) {
    backward_parts parts = begin_backward(stream, of, scale, std::move(gradient));
    parallel_->overlap->run(stream, {}, {this, &parts});
    return end_backward(parts);
  }
  pass now = begin(stream, of);
  now.scale = scale;
  if (ends_) gradient = head_backward(now, of, scale, deferred);
  for (std::size_t i = depth_; i-- > 0;) layer_backward(now, of, i, gradient, deferred);
  return end_gradients(now, of, std::move(gradient), deferred);
}

buffer model::end_gradients(const pass& now, activations& of, buffer gradient,
                            bool deferred) const {
  if (!begins_) return handed_on(now, std::move(gradient), depth_ > 0 || ends_);
  if (deferred)
    of.embedded_gradient = std::move(gradient);
  else
    embed_backward(now, of, gradient);
  return {};
}

// Turns the logits into their gradient.
void model::loss_backward(const pass& now, const activations& of, double scale) {
  if (is_shared()) return shared_loss_backward(now, of, scale);
  const std::int64_t tokens = now.batch.tokens();
  const bool divides = of.counted > 0;
  loss_gradient_ = static_cast<float>(divides ? scale / of.counted : scale);
  velo::cross_entropy_backward(
      now.stream, velo::cross_entropy_backward_args()
                      .dloss(velo::tensor_view(&loss_gradient_, {}))
                      .logits(logits(now, of))
                      .targets(velo::tensor_view(of.targets(), {tokens}))
                      .lse(floats(of.lse, tokens))
                      .dlogits(logits(now, of))
                      .reduction(divides ? velo::reduction::sum : velo::reduction::mean));
}

// Gradients are averaged over the context ranks, which have parts of a mean.
void model::shared_loss_backward(const pass& now, const activations& of, double scale) const {
  const std::int64_t tokens = now.batch.tokens();
  const buffer each = memory_.take(now.room.tokens() * 4, VELO_PURPOSE_WORKSPACE);
  std::fill_n(each.floats(), tokens,
              static_cast<float>(scale * parallel_->context.ranks() / counted_by_ranks(of)));
  velo::vocab_parallel_cross_entropy_backward(
      now.stream, velo::vocab_parallel_cross_entropy_backward_args()
                      .group(parallel_->tensor.group())
                      .dloss(floats(each, tokens))
                      .logits(logits(now, of))
                      .targets(velo::tensor_view(of.targets(), {tokens}))
                      .lse(floats(of.lse, tokens))
                      .dlogits(logits(now, of))
                      .vocab_begin(part_.vocab_begin)
                      .vocab_size(settings_.vocab));
}

// Returns the gradient of the last layer's output. Ranks that share the head compute both of its
// gradients together; one that has it alone computes the weight's first, which frees its input.
buffer model::head_backward(const pass& now, activations& of, double scale, bool deferred) {
  loss_backward(now, of, scale);
  of.lse = {};
  const bool both = !deferred && (is_cut_one_way(now) || is_cut_both_ways(now));
  if (!deferred && !both) head_gradient(now, of);
  buffer through =
      memory_.take(now.room_of_rows() * part_.hidden * (type_.bits / 8), VELO_PURPOSE_WORKSPACE);
  const velo::tensor_view gradient = stream(now, through);
  project_backward(now, *head_, {stream(now, of.normed), logits(now, of), gradient}, !both,
                   &of.normed);
  if (both && of.reducer) of.reducer->head_ready();
  if (!deferred) of.logits = {};
  norm_backward(now, stream(now, of.residual[depth_]), gain_, of.rstd, gradient, gain_gradient_);
  of.residual[depth_] = {};
  of.rstd = {};
  return through;
}

void model::head_gradient(const pass& now, activations& of) const {
  project_weight_gradient(now, *head_, stream(now, of.normed), logits(now, of));
  if (of.reducer) of.reducer->head_ready();
  of.normed = {};
}

void model::embed_backward(const pass& now, activations& of, const buffer& gradient) const {
  embedding_backward(now, velo::tensor_view(of.inputs(), {now.batch.all_tokens()}),
                     stream(now, gradient), embedding_gradient_, part_.vocab_begin,
                     settings_.vocab);
}

void model::weight_gradients(const velo::stream_ref& stream, activations& of) const {
  const pass now = begin(stream, of);
  if (ends_) {
    head_gradient(now, of);
    of.logits = {};
  }
  for (std::size_t i = depth_; i-- > 0;) {
    layers_[i].weight_gradients(now, of.layers[i]);
    finish_layer(now, of, i);
  }
  if (begins_) embed_backward(now, of, of.embedded_gradient);
  of.embedded_gradient = {};
}

void model::finish_layer(const pass& now, const activations& of, std::size_t layer) const {
  if (of.finishes) layers_[layer].sum_key_gradients(now);
  if (of.reducer) of.reducer->layer_ready(first_ + layer);
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
void model::restore_input(const pass& now, activations& of, std::size_t layer) const {
  const auto first = static_cast<std::size_t>(recompute_[layer].first);
  if (recompute_[layer].has(VELO_RECOMPUTE_FULL))
    gather_own_rows(now, of.residual[first], type_, part_.hidden);
  for (std::size_t i = first; i < layer; ++i) {
    if (of.residual[i + 1]) continue;
    restore_keys(now, of, i);
    layers_[i].forward(now, of.residual[i], of.layers[i], of.residual[i + 1]);
  }
}

// Recomputes the keys that a layer shares, if they are missing, and with them the inputs that their
// owner's group leads to. The owner, whose backward pass is the next, finds them there.
void model::restore_keys(const pass& now, activations& of, std::size_t layer) const {
  if (!shares_keys(layer) || of.keys != nullptr) return;  // keys of whole sequences stay
  const std::size_t owner = layer - 1;
  of.layers[layer].owner = &of.layers[owner];
  bring_back(of, owner);
  if (layers_[owner].has_shared(now, of.layers[owner])) return;
  restore_input(now, of, owner);
  layers_[owner].make_shared(now, of.residual[owner], of.layers[owner]);
}

void model::layer_backward(const pass& now, activations& of, std::size_t layer, buffer& gradient,
                           bool deferred) const {
  bring_back(of, layer);
  restore_keys(now, of, layer);
  restore_input(now, of, layer);
  layers_[layer].backward(now, gradient, of.residual[layer], of.layers[layer], deferred);
  of.residual[layer] = {};
  if (!deferred) finish_layer(now, of, layer);
}

}  // namespace decoder
