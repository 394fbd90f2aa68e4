// The operators of a layer in their order.
#include "decoder_layer.hpp"

#include <cmath>

namespace pretrain {
namespace {

std::int64_t qkv_width(const model_settings& m) {
  return m.hidden + 2 * m.kv_heads * m.head_dim();
}

double attention_scale(const model_settings& m) {
  return 1 / std::sqrt(static_cast<double>(m.head_dim()));
}

}  // namespace

void workspace::plan(arena& from, const model_settings& m, batch_shape largest, bool training) {
  const std::int64_t size = largest.tokens() * (m.dtype == "bf16" ? 2 : 4);
  branch = from.take(size * m.hidden);
  if (!training) return;
  qkv = from.take(size * qkv_width(m));
  attended = from.take(size * m.hidden);
  gated = from.take(size * m.inner);
}

decoder_layer::decoder_layer(const velo::context& context, const weights& from,
                             const model_settings& m, const layer_layout& at, bool training)
    : model_(m),
      type_(dtype_of(from.type())),
      qkv_(context, from, at.qkv, qkv_width(m), m.hidden, training),
      out_(context, from, at.out, m.hidden, m.hidden, training),
      gate_up_(context, from, at.gate_up, 2 * m.inner, m.hidden, training),
      down_(context, from, at.down, m.hidden, m.inner, training),
      attention_gain_(from.weight(at.attention_norm, {m.hidden})),
      feed_forward_gain_(from.weight(at.feed_forward_norm, {m.hidden})) {
  if (!training) return;
  attention_gain_gradient_ = from.gradient(at.attention_norm, {m.hidden});
  feed_forward_gain_gradient_ = from.gradient(at.feed_forward_norm, {m.hidden});
}

void decoder_layer::plan(arena& from, batch_shape largest) {
  const std::int64_t tokens = largest.tokens(), size = tokens * (type_.bits / 8);
  const auto floats = [&](std::int64_t count) {
    return reinterpret_cast<float*>(from.take(count * 4));
  };
  attention_input_ = from.take(size * model_.hidden);
  projected_ = from.take(size * qkv_width(model_));
  attended_ = from.take(size * model_.hidden);
  middle_ = from.take(size * model_.hidden);
  feed_forward_input_ = from.take(size * model_.hidden);
  gates_ = from.take(size * 2 * model_.inner);
  gated_ = from.take(size * model_.inner);
  output_ = from.take(size * model_.hidden);
  attention_rstd_ = floats(tokens);
  feed_forward_rstd_ = floats(tokens);
  softmax_max_ = floats(tokens * model_.heads);
  softmax_sum_ = floats(tokens * model_.heads);
}

void decoder_layer::refresh(const velo::stream_ref& stream) {
  for (linear* each : {&qkv_, &out_, &gate_up_, &down_}) each->refresh(stream);
}

velo::tensor_view decoder_layer::rows(std::byte* data, batch_shape batch,
                                      std::int64_t width) const {
  return {data, type_, {batch.tokens(), width}};
}

// Some heads of a projection, [sequences, length, count, head width], where they lie.
velo::tensor_view decoder_layer::heads(std::byte* qkv, batch_shape batch, std::int64_t first,
                                       std::int64_t count) const {
  const std::int64_t width = model_.head_dim(), row = qkv_width(model_);
  return {qkv + first * width * (type_.bits / 8),
          type_,
          {batch.sequences, batch.length, count, width},
          {batch.length * row, row, width, 1}};
}

std::byte* decoder_layer::forward(const velo::stream_ref& stream, batch_shape batch,
                                  std::byte* input, const rotary_table& angles,
                                  const workspace& space) {
  const std::int64_t hidden = model_.hidden, inner = model_.inner;
  input_ = input;
  velo::rms_norm(stream, velo::rms_norm_args()
                             .x(rows(input, batch, hidden))
                             .gamma(attention_gain_)
                             .y(rows(attention_input_, batch, hidden))
                             .rstd(velo::tensor_view(attention_rstd_, {batch.tokens(), 1}))
                             .epsilon(model_.norm_epsilon));
  attention_forward(stream, batch, angles, space);
  velo::add(stream, velo::add_args()
                        .a(rows(input, batch, hidden))
                        .b(rows(space.branch, batch, hidden))
                        .y(rows(middle_, batch, hidden)));

  velo::rms_norm(stream, velo::rms_norm_args()
                             .x(rows(middle_, batch, hidden))
                             .gamma(feed_forward_gain_)
                             .y(rows(feed_forward_input_, batch, hidden))
                             .rstd(velo::tensor_view(feed_forward_rstd_, {batch.tokens(), 1}))
                             .epsilon(model_.norm_epsilon));
  gate_up_.forward(stream, rows(feed_forward_input_, batch, hidden),
                   rows(gates_, batch, 2 * inner));
  velo::swiglu(stream,
               velo::swiglu_args().x(rows(gates_, batch, 2 * inner)).y(rows(gated_, batch, inner)));
  down_.forward(stream, rows(gated_, batch, inner), rows(space.branch, batch, hidden));
  velo::add(stream, velo::add_args()
                        .a(rows(middle_, batch, hidden))
                        .b(rows(space.branch, batch, hidden))
                        .y(rows(output_, batch, hidden)));
  return output_;
}

void decoder_layer::attention_forward(const velo::stream_ref& stream, batch_shape batch,
                                      const rotary_table& angles, const workspace& space) {
  const std::int64_t hidden = model_.hidden, queries = model_.heads, keys = model_.kv_heads;
  qkv_.forward(stream, rows(attention_input_, batch, hidden),
               rows(projected_, batch, qkv_width(model_)));
  const velo::tensor_view rotated = heads(projected_, batch, 0, queries + keys);
  velo::rotary_position_embedding(stream, velo::rotary_position_embedding_args()
                                              .x(rotated)
                                              .cos(angles.cosines())
                                              .sin(angles.sines())
                                              .y(rotated));
  velo::fusion_attention(
      stream,
      velo::fusion_attention_args()
          .query(heads(projected_, batch, 0, queries))
          .key(heads(projected_, batch, queries, keys))
          .value(heads(projected_, batch, queries + keys, keys))
          .attention_out(velo::tensor_view(
              attended_, type_, {batch.sequences, batch.length, queries, model_.head_dim()}))
          .softmax_max(velo::tensor_view(softmax_max_, {batch.sequences, queries, batch.length}))
          .softmax_sum(velo::tensor_view(softmax_sum_, {batch.sequences, queries, batch.length}))
          .scale(attention_scale(model_))
          .sparse_mode(velo::attention_sparse_mode::left_up_causal));
  out_.forward(stream, rows(attended_, batch, hidden), rows(space.branch, batch, hidden));
}

void decoder_layer::backward(const velo::stream_ref& stream, batch_shape batch, std::byte* gradient,
                             const rotary_table& angles, const workspace& space) {
  const velo::tensor_view through = rows(gradient, batch, model_.hidden);
  const velo::tensor_view branch = rows(space.branch, batch, model_.hidden);
  feed_forward_backward(stream, batch, through, space);
  velo::add(stream, velo::add_args().a(through).b(branch).y(through));
  attention_backward(stream, batch, through, angles, space);
  velo::add(stream, velo::add_args().a(through).b(branch).y(through));
}

// Leaves in the workspace's branch what the feed-forward block adds to the gradient;
// attention_backward does the same.
void decoder_layer::feed_forward_backward(const velo::stream_ref& stream, batch_shape batch,
                                          const velo::tensor_view& gradient,
                                          const workspace& space) {
  const std::int64_t hidden = model_.hidden, inner = model_.inner;
  const velo::tensor_view gated = rows(space.gated, batch, inner),
                          gates = rows(gates_, batch, 2 * inner);
  const velo::tensor_view branch = rows(space.branch, batch, hidden);
  down_.weight_gradient(stream, rows(gated_, batch, inner), gradient);
  down_.input_gradient(stream, gradient, gated);
  velo::swiglu_backward(stream, velo::swiglu_backward_args().dy(gated).x(gates).dx(gates));
  gate_up_.weight_gradient(stream, rows(feed_forward_input_, batch, hidden), gates);
  gate_up_.input_gradient(stream, gates, branch);
  velo::rms_norm_backward(stream,
                          velo::rms_norm_backward_args()
                              .dy(branch)
                              .x(rows(middle_, batch, hidden))
                              .gamma(feed_forward_gain_)
                              .rstd(velo::tensor_view(feed_forward_rstd_, {batch.tokens(), 1}))
                              .dx(branch)
                              .dgamma(feed_forward_gain_gradient_)
                              .accumulate(true));
}

void decoder_layer::attention_backward(const velo::stream_ref& stream, batch_shape batch,
                                       const velo::tensor_view& gradient,
                                       const rotary_table& angles, const workspace& space) {
  const std::int64_t hidden = model_.hidden, queries = model_.heads, keys = model_.kv_heads;
  const velo::tensor_view branch = rows(space.branch, batch, hidden);
  const velo::tensor_view projected = rows(space.qkv, batch, qkv_width(model_));
  const auto attention_shape = [&](std::byte* data) {
    return velo::tensor_view(data, type_,
                             {batch.sequences, batch.length, queries, model_.head_dim()});
  };
  out_.weight_gradient(stream, rows(attended_, batch, hidden), gradient);
  out_.input_gradient(stream, gradient, rows(space.attended, batch, hidden));
  velo::fusion_attention_backward(
      stream,
      velo::fusion_attention_backward_args()
          .dy(attention_shape(space.attended))
          .query(heads(projected_, batch, 0, queries))
          .key(heads(projected_, batch, queries, keys))
          .value(heads(projected_, batch, queries + keys, keys))
          .attention_out(attention_shape(attended_))
          .softmax_max(velo::tensor_view(softmax_max_, {batch.sequences, queries, batch.length}))
          .softmax_sum(velo::tensor_view(softmax_sum_, {batch.sequences, queries, batch.length}))
          .dquery(heads(space.qkv, batch, 0, queries))
          .dkey(heads(space.qkv, batch, queries, keys))
          .dvalue(heads(space.qkv, batch, queries + keys, keys))
          .scale(attention_scale(model_))
          .sparse_mode(velo::attention_sparse_mode::left_up_causal));
  const velo::tensor_view rotated = heads(space.qkv, batch, 0, queries + keys);
  velo::rotary_position_embedding_backward(stream, velo::rotary_position_embedding_backward_args()
                                                       .dy(rotated)
                                                       .cos(angles.cosines())
                                                       .sin(angles.sines())
                                                       .dx(rotated));
  qkv_.weight_gradient(stream, rows(attention_input_, batch, hidden), projected);
  qkv_.input_gradient(stream, projected, branch);
  velo::rms_norm_backward(stream, velo::rms_norm_backward_args()
                                      .dy(branch)
                                      .x(rows(input_, batch, hidden))
                                      .gamma(attention_gain_)
                                      .rstd(velo::tensor_view(attention_rstd_, {batch.tokens(), 1}))
                                      .dx(branch)
                                      .dgamma(attention_gain_gradient_)
                                      .accumulate(true));
}

}  // namespace pretrain
