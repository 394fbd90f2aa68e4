// What lies around the layers.
#include "model.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "exchange.hpp"
#include "swapper.hpp"

namespace pretrain {

model::model(run_memory& from, const velo::context& context, const weights& weights,
             const model_settings& settings, std::int64_t length, bool training)
    : memory_(from),
      settings_(settings),
      type_(dtype_of(weights.type())),
      recompute_(recompute_of({}, settings.layers)),
      depth_(recompute_.size()),
      head_(context, weights, weights.layout().head, settings.vocab, settings.hidden, training),
      embedding_(weights.weight(weights.layout().embedding, {settings.vocab, settings.hidden})),
      gain_(weights.weight(weights.layout().final_norm, {settings.hidden})),
      angles_(from, settings, length) {
  for (const layer_layout& at : weights.layout().layers)
    layers_.emplace_back(context, weights, settings, at, training);
  if (!training) return;
  embedding_gradient_ =
      weights.gradient(weights.layout().embedding, {settings.vocab, settings.hidden});
  gain_gradient_ = weights.gradient(weights.layout().final_norm, {settings.hidden});
}

void model::refresh(const velo::stream_ref& stream, const exchange* gathered) {
  if (gathered) gathered->await_embedding();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (gathered) gathered->await_layer(i);
    layers_[i].refresh(stream);
  }
  if (gathered) gathered->await_head(), gathered->await_norms();
  head_.refresh(stream);
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
  of.clear();  // a forward pass without a backward pass leaves something
  of.sequences = sequences;
  const pass now = begin(stream, of);
  const std::int64_t tokens = now.batch.tokens(), hidden = settings_.hidden;
  of.residual[0] = make(now, hidden);
  embed(now, of);
  for (std::size_t i = 0; i < depth_; ++i) layer_forward(now, of, i, alone);
  of.normed = make(now, hidden);
  of.rstd = make_floats(now);
  velo::rms_norm(stream, velo::rms_norm_args()
                             .x(rows(now, of.residual[depth_], hidden))
                             .gamma(gain_)
                             .y(rows(now, of.normed, hidden))
                             .rstd(velo::tensor_view(of.rstd.floats(), {tokens, 1}))
                             .epsilon(settings_.norm_epsilon));
  of.logits = make(now, settings_.vocab);
  head_.forward(stream, rows(now, of.normed, hidden), rows(now, of.logits, settings_.vocab));
  if (alone) of.residual[depth_] = {}, of.normed = {}, of.rstd = {};
  return rows(now, of.logits, settings_.vocab);
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
  const pass now = begin(stream, of);
  const std::int64_t hidden = settings_.hidden, tokens = now.batch.tokens();
  const velo::tensor_view logits = rows(now, of.logits, settings_.vocab);
  const velo::tensor_view targets(of.targets(), {tokens});
  loss_gradient_ = static_cast<float>(scale);
  velo::cross_entropy_backward(stream, velo::cross_entropy_backward_args()
                                           .dloss(velo::tensor_view(&loss_gradient_, {}))
                                           .logits(logits)
                                           .targets(targets)
                                           .lse(velo::tensor_view(of.lse.floats(), {tokens}))
                                           .dlogits(logits));
  of.lse = {};
  head_.weight_gradient(stream, rows(now, of.normed, hidden), logits);
  if (of.told) of.told->head_ready();
  of.normed = {};
  const buffer through =
      memory_.take(now.room.tokens() * hidden * (type_.bits / 8), VELO_PURPOSE_WORKSPACE);
  const velo::tensor_view gradient = rows(now, through, hidden);
  head_.input_gradient(stream, logits, gradient);
  of.logits = {};
  velo::rms_norm_backward(stream, velo::rms_norm_backward_args()
                                      .dy(gradient)
                                      .x(rows(now, of.residual[depth_], hidden))
                                      .gamma(gain_)
                                      .rstd(velo::tensor_view(of.rstd.floats(), {tokens, 1}))
                                      .dx(gradient)
                                      .dgamma(gain_gradient_)
                                      .accumulate(true));
  of.residual[depth_] = {}, of.rstd = {};
  for (std::size_t i = depth_; i-- > 0;) layer_backward(now, of, i, through);
  velo::embedding_backward(stream, velo::embedding_backward_args()
                                       .ids(velo::tensor_view(of.inputs(), {tokens}))
                                       .dy(gradient)
                                       .dtable(embedding_gradient_)
                                       .rows(settings_.vocab)
                                       .accumulate(true));
}

void model::layer_forward(const pass& now, activations& of, std::size_t layer, bool alone) const {
  const layer_recompute& what = recompute_[layer];
  of.residual[layer + 1] = layers_[layer].forward(now, of.residual[layer], of.layers[layer]);
  decoder_layer::let_go(of.layers[layer], what);
  if (alone) of.layers[layer] = {};
  const bool inside_group =
      what.has(VELO_RECOMPUTE_FULL) && what.first < static_cast<std::int64_t>(layer);
  if (alone || inside_group) of.residual[layer] = {};
  if (alone || of.away == nullptr) return;
  // The copies of a layer go on while the next one computes. The last is needed at once.
  if (layer > 0) of.each_kept(layer - 1, [&](buffer& each) { of.away->settle(each); });
  if (layer + 1 < depth_) of.each_kept(layer, [&](buffer& each) { of.away->out(each); });
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
void model::layer_backward(const pass& now, activations& of, std::size_t layer,
                           const buffer& gradient) const {
  bring_back(of, layer);
  const auto first = static_cast<std::size_t>(recompute_[layer].first);
  for (std::size_t i = first; i < layer; ++i)
    if (!of.residual[i + 1])
      of.residual[i + 1] = layers_[i].forward(now, of.residual[i], of.layers[i]);
  layers_[layer].backward(now, gradient, of.residual[layer], of.layers[layer]);
  of.residual[layer] = {};
  if (of.told) of.told->layer_ready(layer);
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
  restore();
  std::vector<recompute_cost> costs;
  for (const velo_recompute_kind kind : {VELO_RECOMPUTE_FULL, VELO_RECOMPUTE_SELECTIVE,
                                         VELO_RECOMPUTE_ACTIVATION, VELO_RECOMPUTE_NORM}) {
    recompute_cost cost = {kind, kept(), std::numeric_limits<double>::infinity()};
    for (int i = 0; i < 3; ++i) {
      decoder_layer::let_go(of.layers[0], {kind, 0});
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

}  // namespace pretrain
