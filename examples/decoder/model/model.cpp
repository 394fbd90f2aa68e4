// The forward pass: the embedding, the layers, the head and the loss.
#include "examples/decoder/model/model.hpp"

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

void model::refresh(const velo::stream_ref& stream, const data_parallel* gathered) {
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
  const batch_shape room = memory_.is_dry_run() ? of.largest() : of.batch();
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
  of.clear();  // a forward pass without a backward pass leaves buffers
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
  if (alone) {
    of.residual[depth_] = {};
    of.normed = {};
    of.rstd = {};
  }
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

// Whether the layers before this one recompute its input.
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
  if (of.swap == nullptr) return;
  // A layer is copied while the next one computes. The last layer is needed at once.
  if (layer > 0) of.each_kept(layer - 1, [&](buffer& each) { of.swap->settle(each); });
  if (layer + 1 == depth_) return;
  const auto number = static_cast<std::int64_t>(layer);
  of.each_kept(layer, [&](buffer& each) { of.swap->add(each, number); });
  of.swap->out(number);
}

}  // namespace decoder
