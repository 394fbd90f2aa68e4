// What lies around the layers.
#include "examples/decoder/model/model.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "examples/decoder/memory/swapper.hpp"
#include "examples/decoder/model/data_parallel.hpp"

namespace decoder {

model::model(run_memory& from, const velo::context& context, const weights& weights,
             const model_settings& settings, std::int64_t length, bool training)
    : model(from, context, weights, settings, length, training,
            {0, static_cast<std::size_t>(settings.layers)}) {}

model::model(run_memory& from, const velo::context& context, const weights& weights,
             const model_settings& settings, std::int64_t length, bool training, stage_range part)
    : memory_(from),
      settings_(settings),
      type_(dtype_of(weights.type())),
      first_(part.first),
      begins_(part.first == 0),
      ends_(part.last == static_cast<std::size_t>(settings.layers)),
      recompute_(recompute_of({}, static_cast<std::int64_t>(part.last - part.first))),
      depth_(recompute_.size()),
      angles_(from, settings, length) {
  const weight_layout& at = weights.layout();
  for (std::size_t i = part.first; i < part.last; ++i)
    layers_.emplace_back(context, weights, settings, at.layers[i], training);
  const velo::sizes table = {settings.vocab, settings.hidden};
  if (begins_) embedding_ = weights.weight(at.embedding, table);
  if (ends_) {
    head_.emplace(context, weights, at.head, settings.vocab, settings.hidden, training);
    gain_ = weights.weight(at.final_norm, {settings.hidden});
  }
  if (!training) return;
  if (begins_) embedding_gradient_ = weights.gradient(at.embedding, table);
  if (ends_) gain_gradient_ = weights.gradient(at.final_norm, {settings.hidden});
}

void model::refresh(const velo::stream_ref& stream, const exchange* gathered) {
  if (gathered && begins_) gathered->await_embedding();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (gathered) gathered->await_layer(first_ + i);
    layers_[i].refresh(stream);
  }
  if (gathered) gathered->await_norms();
  if (!ends_) return;
  if (gathered) gathered->await_head();
  head_->refresh(stream);
}

pass model::begin(const velo::stream_ref& stream, const activations& of) const {
  const batch_shape room = memory_.rehearses() ? of.largest() : of.batch();
  return {stream, memory_, angles_, of.batch(), room};
}

velo::tensor_view model::rows(const pass& now, const buffer& of, std::int64_t width) const {
  return {of.data(), type_, {now.batch.tokens(), width}};
}

buffer model::make(const pass& now, std::int64_t width) const {
  return memory_.take(now.room.tokens() * width * (type_.bits / 8), VELO_PURPOSE_ACTIVATION);
}

buffer model::make_floats(const pass& now) const {
  return memory_.take(now.room.tokens() * 4, VELO_PURPOSE_ACTIVATION);
}

velo::tensor_view model::forward(const velo::stream_ref& stream, activations& of,
                                 std::int64_t sequences, bool alone) {
  forward_stage(stream, of, sequences, {}, alone ? kept::nothing : kept::all);
  return rows(begin(stream, of), of.logits, settings_.vocab);
}

buffer model::forward_stage(const velo::stream_ref& stream, activations& of, std::int64_t sequences,
                            buffer input, kept what) {
  of.clear();  // a forward pass without a backward pass leaves something
  of.sequences = sequences;
  const pass now = begin(stream, of);
  if (begins_) {
    of.residual[0] = make(now, settings_.hidden);
    embed(now, of);
  } else {
    of.residual[0] = std::move(input);
  }
  for (std::size_t i = 0; i < depth_; ++i) layer_forward(now, of, i, what);
  if (!ends_) return std::move(of.residual[depth_]);
  head_forward(now, of, what == kept::nothing);
  return {};
}

void model::make_again(const velo::stream_ref& stream, activations& of) const {
  const pass now = begin(stream, of);
  for (std::size_t i = 0; i < depth_; ++i) layer_forward(now, of, i, kept::all);
  of.residual[depth_] = {};  // the next stage has it
}

void model::head_forward(const pass& now, activations& of, bool alone) const {
  const std::int64_t tokens = now.batch.tokens(), hidden = settings_.hidden;
  of.normed = make(now, hidden);
  of.rstd = make_floats(now);
  velo::rms_norm(now.stream, velo::rms_norm_args()
                                 .x(rows(now, of.residual[depth_], hidden))
                                 .gamma(gain_)
                                 .y(rows(now, of.normed, hidden))
                                 .rstd(velo::tensor_view(of.rstd.floats(), {tokens, 1}))
                                 .epsilon(settings_.norm_epsilon));
  of.logits = make(now, settings_.vocab);
  head_->forward(now.stream, rows(now, of.normed, hidden), rows(now, of.logits, settings_.vocab));
  if (alone) of.residual[depth_] = {}, of.normed = {}, of.rstd = {};
}

void model::embed(const pass& now, activations& of) const {
  velo::embedding(now.stream, velo::embedding_args()
                                  .ids(velo::tensor_view(of.inputs(), {now.batch.tokens()}))
                                  .table(embedding_)
                                  .y(rows(now, of.residual[0], settings_.hidden)));
}

double model::loss(const velo::stream_ref& stream, activations& of, velo::reduction how) {
  const pass now = begin(stream, of);
  const std::int64_t tokens = now.batch.tokens();
  of.lse = make_floats(now);
  velo::cross_entropy(stream, velo::cross_entropy_args()
                                  .logits(rows(now, of.logits, settings_.vocab))
                                  .targets(velo::tensor_view(of.targets(), {tokens}))
                                  .loss(velo::tensor_view(&loss_, {}))
                                  .lse(velo::tensor_view(of.lse.floats(), {tokens}))
                                  .reduction(how));
  return static_cast<double>(loss_);
}

void model::backward(const velo::stream_ref& stream, activations& of, double scale) {
  backward_stage(stream, of, scale, {}, false);
}

buffer model::backward_stage(const velo::stream_ref& stream, activations& of, double scale,
                             buffer gradient, bool later) {
  const pass now = begin(stream, of);
  if (ends_) gradient = head_backward(now, of, scale, later);
  for (std::size_t i = depth_; i-- > 0;) layer_backward(now, of, i, gradient, later);
  if (!begins_) return gradient;
  if (later)
    of.embedded_gradient = std::move(gradient);
  else
    embed_backward(now, of, gradient);
  return {};
}

// The gradient of what the last layer gives.
buffer model::head_backward(const pass& now, activations& of, double scale, bool later) {
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
  if (!later) {
    head_->weight_gradient(now.stream, rows(now, of.normed, hidden), logits);
    if (of.told) of.told->head_ready();
    of.normed = {};
  }
  buffer through =
      memory_.take(now.room.tokens() * hidden * (type_.bits / 8), VELO_PURPOSE_WORKSPACE);
  const velo::tensor_view gradient = rows(now, through, hidden);
  head_->input_gradient(now.stream, logits, gradient);
  if (!later) of.logits = {};
  velo::rms_norm_backward(now.stream, velo::rms_norm_backward_args()
                                          .dy(gradient)
                                          .x(rows(now, of.residual[depth_], hidden))
                                          .gamma(gain_)
                                          .rstd(velo::tensor_view(of.rstd.floats(), {tokens, 1}))
                                          .dx(gradient)
                                          .dgamma(gain_gradient_)
                                          .accumulate(true));
  of.residual[depth_] = {}, of.rstd = {};
  return through;
}

void model::embed_backward(const pass& now, activations& of, const buffer& gradient) const {
  velo::embedding_backward(now.stream,
                           velo::embedding_backward_args()
                               .ids(velo::tensor_view(of.inputs(), {now.batch.tokens()}))
                               .dy(rows(now, gradient, settings_.hidden))
                               .dtable(embedding_gradient_)
                               .rows(settings_.vocab)
                               .accumulate(true));
}

void model::weight_gradients(const velo::stream_ref& stream, activations& of) const {
  const pass now = begin(stream, of);
  if (ends_) {
    head_->weight_gradient(stream, rows(now, of.normed, settings_.hidden),
                           rows(now, of.logits, settings_.vocab));
    if (of.told) of.told->head_ready();
    of.normed = {}, of.logits = {};
  }
  for (std::size_t i = depth_; i-- > 0;) {
    layers_[i].weight_gradients(now, of.layers[i]);
    if (of.told) of.told->layer_ready(first_ + i);
  }
  if (begins_) embed_backward(now, of, of.embedded_gradient);
  of.embedded_gradient = {};
}

// Its input is made again by the layers before it.
bool model::inside_group(std::size_t layer) const {
  const layer_recompute& later = recompute_[layer];
  return later.has(VELO_RECOMPUTE_FULL) && later.first < static_cast<std::int64_t>(layer);
}

void model::layer_forward(const pass& now, activations& of, std::size_t layer, kept what) const {
  if (what == kept::all) {
    decoder_layer::recompute(of.layers[layer], recompute_[layer]);
    if (layer + 1 < depth_ && inside_group(layer + 1)) of.residual[layer + 1].recompute();
  }
  layers_[layer].forward(now, of.residual[layer], of.layers[layer], of.residual[layer + 1]);
  if (what != kept::all) {
    of.layers[layer] = {};
    if (what == kept::nothing || layer > 0) of.residual[layer] = {};
    return;
  }
  of.layers[layer].each_kept([](buffer& each) { each.release(); });
  of.residual[layer].release();
  if (of.away == nullptr) return;
  // The copies of a layer go on while the next one computes. The last is needed at once.
  if (layer > 0) of.each_kept(layer - 1, [&](buffer& each) { of.away->settle(each); });
  if (layer + 1 == depth_) return;
  const auto number = static_cast<std::int64_t>(layer);
  of.each_kept(layer, [&](buffer& each) { of.away->add(each, number); });
  of.away->out(number);
}

// Has what a layer's backward pass begins with back, and the same of the layer below on its way.
void model::bring_back(activations& of, std::size_t layer) const {
  if (of.away == nullptr) return;
  const auto needed = [&](std::size_t i) { return static_cast<std::size_t>(recompute_[i].first); };
  of.each_kept(needed(layer), [&](buffer& each) { of.away->in(each); });
  of.each_kept(needed(layer), [&](buffer& each) { of.away->wait(each); });
  if (layer > 0) of.each_kept(needed(layer - 1), [&](buffer& each) { of.away->in(each); });
}

// The last layer of a group that is made again from the group's input brings the others with it.
void model::layer_backward(const pass& now, activations& of, std::size_t layer, buffer& gradient,
                           bool later) const {
  bring_back(of, layer);
  const auto first = static_cast<std::size_t>(recompute_[layer].first);
  for (std::size_t i = first; i < layer; ++i)
    if (!of.residual[i + 1])
      layers_[i].forward(now, of.residual[i], of.layers[i], of.residual[i + 1]);
  layers_[layer].backward(now, gradient, of.residual[layer], of.layers[layer], later);
  of.residual[layer] = {};
  if (of.told && !later) of.told->layer_ready(first_ + layer);
}

std::vector<recompute_cost> model::measure(const velo::stream_ref& stream, activations& of) {
  of.clear();
  of.sequences = of.largest().sequences;
  const pass now = begin(stream, of);
  of.residual[0] = make(now, settings_.hidden);
  embed(now, of);
  const auto restore = [&] { layers_[0].restore(now, of.residual[0], of.layers[0]); };
  const auto kept = [&] {
    std::int64_t bytes = 0;
    of.each_kept(0, [&](const buffer& each) { bytes += each ? each.bytes() : 0; });
    return bytes;
  };
  std::vector<recompute_cost> costs;
  for (const velo_recompute_kind kind : {VELO_RECOMPUTE_FULL, VELO_RECOMPUTE_SELECTIVE,
                                         VELO_RECOMPUTE_ACTIVATION, VELO_RECOMPUTE_NORM}) {
    of.layers[0] = {};
    decoder_layer::recompute(of.layers[0], {kind, 0});
    restore();
    recompute_cost cost = {kind, kept(), std::numeric_limits<double>::infinity()};
    for (int i = 0; i < 3; ++i) {
      of.layers[0].each_kept([](buffer& each) { each.release(); });
      if (i == 0) cost.bytes -= kept();
      const auto before = std::chrono::steady_clock::now();
      restore();
      const auto after = std::chrono::steady_clock::now();
      cost.seconds = std::min(cost.seconds, std::chrono::duration<double>(after - before).count());
    }
    costs.push_back(cost);
  }
  of.clear();
  return costs;
}

std::vector<lifetime> model::rehearse(const velo::stream_ref& stream, activations& of) {
  memory_.begin_rehearsal();
  forward(stream, of, 0);
  loss(stream, of, velo::reduction::mean);
  backward(stream, of, 1);
  return memory_.end_rehearsal();
}

void model::warm_up(const velo::stream_ref& stream, activations& of) {
  const std::size_t all = std::exchange(depth_, 1);
  forward(stream, of, of.largest().sequences);
  loss(stream, of, velo::reduction::mean);
  backward(stream, of, 1);
  depth_ = all;
}

}  // namespace decoder
