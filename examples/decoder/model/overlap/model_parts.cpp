// A stage's passes in parts: what happens before, between and after the parts of its layers.
#include <utility>

#include "examples/decoder/model/model.hpp"
#include "examples/decoder/model/overlap/layer_overlap.hpp"

namespace decoder {
namespace {

pass on_stream(pass now, const velo::stream_ref& stream) {
  now.stream = stream;
  return now;
}

}  // namespace

std::vector<std::int32_t> model::dense_layers() const {
  std::vector<std::int32_t> all;
  for (std::size_t i = 0; i < depth_; ++i) all.push_back(layers_[i].has_experts() ? 0 : 1);
  return all;
}

forward_parts model::begin_forward(const velo::stream_ref& stream, activations& of,
                                   std::int64_t sequences, buffer input, kept what) {
  of.clear();  // a forward pass without a backward pass leaves buffers
  of.sequences = sequences;
  const pass now = begin(stream, of);
  begin_layers(now, of, std::move(input));
  return {now, on_stream(now, parallel_->overlap->messages()), of, what};
}

void model::start(const forward_parts& parts, const velo_sublayer_step& step) {
  const auto layer = static_cast<std::size_t>(step.layer);
  activations& of = parts.of;
  if (step.kind == VELO_SUBLAYER_ATTENTION_F) {
    if (layer > 0) finish_layer_parts(parts, layer - 1);
    if (gathered_ != nullptr) require_layers(parts.now.stream, layer + 1);
    begin_layer(of, layer, parts.what);
  }
  layers_[layer].start(step.kind, step.message != 0 ? parts.messages : parts.now,
                       of.residual[layer], of.layers[layer]);
}

void model::finish_layer_parts(const forward_parts& parts, std::size_t layer) const {
  activations& of = parts.of;
  layers_[layer].finish(parts.now, of.residual[layer], of.layers[layer], of.residual[layer + 1]);
  end_layer(parts.now, of, layer, parts.what);
}

buffer model::end_forward(const forward_parts& parts) {
  if (depth_ > 0) finish_layer_parts(parts, depth_ - 1);
  return end_layers(parts.now, parts.of, parts.what);
}

backward_parts model::begin_backward(const velo::stream_ref& stream, activations& of, double scale,
                                     buffer gradient) {
  pass now = begin(stream, of);
  now.scale = scale;
  if (ends_) gradient = head_backward(now, of, scale, false);
  return {now, on_stream(now, parallel_->overlap->messages()), of, std::move(gradient)};
}

void model::start(backward_parts& parts, const velo_sublayer_step& step) const {
  const auto layer = static_cast<std::size_t>(step.layer);
  activations& of = parts.of;
  const decoder_layer& own = layers_[layer];
  const bool first = step.kind == VELO_SUBLAYER_COMBINE_B ||
                     (step.kind == VELO_SUBLAYER_EXPERTS_B && !own.has_experts());
  if (first) {
    bring_back(of, layer);
    restore_keys(parts.now, of, layer);
    restore_input(parts.now, of, layer);
    own.begin_backward(parts.now, of.residual[layer], of.layers[layer]);
  }
  own.start_backward(step.kind, step.message != 0 ? parts.messages : parts.now, parts.gradient,
                     of.residual[layer], of.layers[layer]);
  if (step.kind != VELO_SUBLAYER_ATTENTION_B) return;
  of.residual[layer] = {};
  finish_layer(parts.now, of, layer);
}

buffer model::end_backward(backward_parts& parts) const {
  return end_gradients(parts.now, parts.of, std::move(parts.gradient), false);
}

}  // namespace decoder
