// What lies around the layers.
#include "model.hpp"

#include <cstring>

namespace pretrain {

model::model(const velo::context& context, const weights& from, const model_settings& settings,
             batch_shape largest, bool training)
    : settings_(settings),
      largest_(largest),
      training_(training),
      type_(dtype_of(from.type())),
      head_(context, from, from.layout().head, settings.vocab, settings.hidden, training),
      embedding_(from.weight(from.layout().embedding, {settings.vocab, settings.hidden})),
      gain_(from.weight(from.layout().final_norm, {settings.hidden})) {
  for (const layer_layout& at : from.layout().layers)
    layers_.emplace_back(context, from, settings, at, training);
  if (training) {
    embedding_gradient_ = from.gradient(from.layout().embedding, {settings.vocab, settings.hidden});
    gain_gradient_ = from.gradient(from.layout().final_norm, {settings.hidden});
  }
  arena measured;
  plan(measured);
  memory_ = velo::managed_tensor::create(context, velo::dtype<std::uint8_t>, {measured.used()});
  auto bytes = memory_.view().data<std::byte>();
  // Touched now, so that no step meets a fresh page.
  std::memset(bytes, 0, static_cast<std::size_t>(measured.used()));
  arena memory(bytes);
  plan(memory);
  angles_.fill(settings);
}

void model::plan(arena& from) {
  const std::int64_t tokens = largest_.tokens(), size = tokens * (type_.bits / 8);
  const auto floats = [&](std::int64_t count) {
    return reinterpret_cast<float*>(from.take(count * 4));
  };
  const auto symbols = [&] { return reinterpret_cast<std::int32_t*>(from.take(tokens * 4)); };
  inputs_ = symbols();
  targets_ = symbols();
  angles_.plan(from, settings_, largest_.length);
  space_.plan(from, settings_, largest_, training_);
  embedded_ = from.take(size * settings_.hidden);
  normed_ = from.take(size * settings_.hidden);
  logits_ = from.take(size * settings_.vocab);
  gradient_ = from.take(size * settings_.hidden);
  rstd_ = floats(tokens);
  lse_ = floats(tokens);
  loss_ = floats(1);
  loss_gradient_ = floats(1);
  for (decoder_layer& layer : layers_) layer.plan(from, largest_);
}

void model::refresh(const velo::stream_ref& stream) {
  head_.refresh(stream);
  for (decoder_layer& layer : layers_) layer.refresh(stream);
}

velo::tensor_view model::rows(std::byte* data, std::int64_t sequences, std::int64_t width) const {
  return {data, type_, {sequences * largest_.length, width}};
}

velo::tensor_view model::forward(const velo::stream_ref& stream, std::int64_t sequences) {
  const batch_shape batch = batch_of(sequences);
  velo::embedding(stream, velo::embedding_args()
                              .ids(velo::tensor_view(inputs_, {batch.tokens()}))
                              .table(embedding_)
                              .y(rows(embedded_, sequences, settings_.hidden)));
  decoded_ = embedded_;
  for (decoder_layer& layer : layers_)
    decoded_ = layer.forward(stream, batch, decoded_, angles_, space_);
  velo::rms_norm(stream, velo::rms_norm_args()
                             .x(rows(decoded_, sequences, settings_.hidden))
                             .gamma(gain_)
                             .y(rows(normed_, sequences, settings_.hidden))
                             .rstd(velo::tensor_view(rstd_, {batch.tokens(), 1}))
                             .epsilon(settings_.norm_epsilon));
  head_.forward(stream, rows(normed_, sequences, settings_.hidden),
                rows(logits_, sequences, settings_.vocab));
  return rows(logits_, sequences, settings_.vocab);
}

double model::loss(const velo::stream_ref& stream, std::int64_t sequences, velo::reduction how) {
  const std::int64_t tokens = batch_of(sequences).tokens();
  velo::cross_entropy(stream, velo::cross_entropy_args()
                                  .logits(rows(logits_, sequences, settings_.vocab))
                                  .targets(velo::tensor_view(targets_, {tokens}))
                                  .loss(velo::tensor_view(loss_, {}))
                                  .lse(velo::tensor_view(lse_, {tokens}))
                                  .reduction(how));
  return static_cast<double>(*loss_);
}

void model::backward(const velo::stream_ref& stream, std::int64_t sequences, double scale) {
  const batch_shape batch = batch_of(sequences);
  const std::int64_t hidden = settings_.hidden, tokens = batch.tokens();
  const velo::tensor_view logits = rows(logits_, sequences, settings_.vocab);
  const velo::tensor_view gradient = rows(gradient_, sequences, hidden);
  *loss_gradient_ = static_cast<float>(scale);
  velo::cross_entropy_backward(stream, velo::cross_entropy_backward_args()
                                           .dloss(velo::tensor_view(loss_gradient_, {}))
                                           .logits(logits)
                                           .targets(velo::tensor_view(targets_, {tokens}))
                                           .lse(velo::tensor_view(lse_, {tokens}))
                                           .dlogits(logits));
  head_.weight_gradient(stream, rows(normed_, sequences, hidden), logits);
  head_.input_gradient(stream, logits, gradient);
  velo::rms_norm_backward(stream, velo::rms_norm_backward_args()
                                      .dy(gradient)
                                      .x(rows(decoded_, sequences, hidden))
                                      .gamma(gain_)
                                      .rstd(velo::tensor_view(rstd_, {tokens, 1}))
                                      .dx(gradient)
                                      .dgamma(gain_gradient_)
                                      .accumulate(true));
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    layer->backward(stream, batch, gradient_, angles_, space_);
  }
  velo::embedding_backward(stream, velo::embedding_backward_args()
                                       .ids(velo::tensor_view(inputs_, {tokens}))
                                       .dy(gradient)
                                       .dtable(embedding_gradient_)
                                       .rows(settings_.vocab)
                                       .accumulate(true));
}

}  // namespace pretrain
