// A layer's weights, and the operators of its forward pass in their order.
#include "examples/decoder/model/decoder_layer.hpp"

namespace decoder {
namespace {

std::int64_t float_bytes(const pass& now, std::int64_t width) {
  return now.room.tokens() * width * 4;
}

}  // namespace

decoder_layer::decoder_layer(const velo::context& context, const weights& from,
                             const model_settings& m, const layer_layout& at, bool training)
    : model_(m),
      type_(dtype_of(from.type())),
      qkv_(context, from, at.qkv, m.qkv_width(), m.hidden, training),
      out_(context, from, at.out, m.hidden, m.hidden, training),
      gate_up_(context, from, at.gate_up, 2 * m.inner, m.hidden, training),
      down_(context, from, at.down, m.hidden, m.inner, training),
      attention_gain_(from.weight(at.attention_norm, {m.hidden})),
      feed_forward_gain_(from.weight(at.feed_forward_norm, {m.hidden})) {
  if (!training) return;
  attention_gain_gradient_ = from.gradient(at.attention_norm, {m.hidden});
  feed_forward_gain_gradient_ = from.gradient(at.feed_forward_norm, {m.hidden});
}

void decoder_layer::refresh(const velo::stream_ref& stream) {
  for (linear* each : {&qkv_, &out_, &gate_up_, &down_}) each->refresh(stream);
}

std::int64_t decoder_layer::bytes(const pass& now, std::int64_t width) const {
  return now.room.tokens() * width * (type_.bits / 8);
}

buffer decoder_layer::workspace(const pass& now, std::int64_t width) const {
  return now.memory.take(bytes(now, width), VELO_PURPOSE_WORKSPACE);
}

velo::tensor_view decoder_layer::column(const pass& now, const buffer& of) const {
  return {of.floats(), {now.batch.tokens(), 1}};
}

velo::tensor_view decoder_layer::rows(const pass& now, const buffer& of, std::int64_t width) const {
  return {of.data(), type_, {now.batch.tokens(), width}};
}

// A view of some heads of a projection: [sequences, length, count, head width].
velo::tensor_view decoder_layer::heads(const pass& now, const buffer& qkv, std::int64_t first,
                                       std::int64_t count) const {
  const std::int64_t width = model_.head_dim(), row = model_.qkv_width();
  return {qkv.data() + first * width * (type_.bits / 8),
          type_,
          {now.batch.sequences, now.batch.length, count, width},
          {now.batch.length * row, row, width, 1}};
}

// Views of the attention's output and of its softmax statistics, by head.
velo::tensor_view decoder_layer::per_head(const pass& now, const buffer& of) const {
  return {
      of.data(), type_, {now.batch.sequences, now.batch.length, model_.heads, model_.head_dim()}};
}
velo::tensor_view decoder_layer::sums(const pass& now, const buffer& of) const {
  return {of.floats(), {now.batch.sequences, model_.heads, now.batch.length}};
}

void decoder_layer::forward(const pass& now, const buffer& input, layer_activations& kept,
                            buffer& output) const {
  make_feed_forward(now, input, kept);
  const std::int64_t hidden = model_.hidden;
  const buffer branch = workspace(now, hidden);
  down_.forward(now.stream, rows(now, kept.gated, model_.inner), rows(now, branch, hidden));
  now.memory.make(output, bytes(now, hidden), [&] {
    velo::add(now.stream, velo::add_args()
                              .a(rows(now, kept.middle, hidden))
                              .b(rows(now, branch, hidden))
                              .y(rows(now, output, hidden)));
  });
}

void decoder_layer::recompute(layer_activations& kept, const layer_recompute& what) {
  if (what.has(VELO_RECOMPUTE_FULL)) kept.each_kept([](buffer& each) { each.recompute(); });
  if (what.has(VELO_RECOMPUTE_SELECTIVE))
    for (buffer* each : {&kept.attended, &kept.softmax_max, &kept.softmax_sum}) each->recompute();
  if (what.has(VELO_RECOMPUTE_ACTIVATION)) kept.gated.recompute();
  if (what.has(VELO_RECOMPUTE_NORM))
    for (buffer* each : {&kept.attention_input, &kept.feed_forward_input}) each->recompute();
}

void decoder_layer::norm(const pass& now, const buffer& x, const velo::tensor_view& gain, buffer& y,
                         buffer& rstd) const {
  if (!rstd) now.memory.make(rstd, float_bytes(now, 1));
  now.memory.make(y, bytes(now, model_.hidden), [&] {
    velo::rms_norm(now.stream, velo::rms_norm_args()
                                   .x(rows(now, x, model_.hidden))
                                   .gamma(gain)
                                   .y(rows(now, y, model_.hidden))
                                   .rstd(column(now, rstd))
                                   .epsilon(model_.norm_epsilon));
  });
}

// Computes the missing activations up to the output of core attention.
void decoder_layer::make_attention(const pass& now, const buffer& input,
                                   layer_activations& kept) const {
  if (!kept.attention_input)
    norm(now, input, attention_gain_, kept.attention_input, kept.attention_rstd);
  if (!kept.projected)
    now.memory.make(kept.projected, bytes(now, model_.qkv_width()), [&] {
      qkv_.forward(now.stream, rows(now, kept.attention_input, model_.hidden),
                   rows(now, kept.projected, model_.qkv_width()));
      const velo::tensor_view rotated =
          heads(now, kept.projected, 0, model_.heads + model_.kv_heads);
      velo::rotary_position_embedding(now.stream, velo::rotary_position_embedding_args()
                                                      .x(rotated)
                                                      .cos(now.angles.cosines())
                                                      .sin(now.angles.sines())
                                                      .y(rotated));
    });
  if (!kept.attended) attend(now, kept);
}

void decoder_layer::attend(const pass& now, layer_activations& kept) const {
  const std::int64_t queries = model_.heads, keys = model_.kv_heads;
  now.memory.make(kept.attended, bytes(now, model_.hidden));
  now.memory.make(kept.softmax_max, float_bytes(now, queries));
  now.memory.make(kept.softmax_sum, float_bytes(now, queries), [&] {
    velo::fusion_attention(now.stream,
                           velo::fusion_attention_args()
                               .query(heads(now, kept.projected, 0, queries))
                               .key(heads(now, kept.projected, queries, keys))
                               .value(heads(now, kept.projected, queries + keys, keys))
                               .attention_out(per_head(now, kept.attended))
                               .softmax_max(sums(now, kept.softmax_max))
                               .softmax_sum(sums(now, kept.softmax_sum))
                               .scale(model_.attention_scale())
                               .sparse_mode(velo::attention_sparse_mode::left_up_causal));
  });
}

// Computes the missing activations up to the input of the product `down`.
void decoder_layer::make_feed_forward(const pass& now, const buffer& input,
                                      layer_activations& kept) const {
  const std::int64_t hidden = model_.hidden, inner = model_.inner;
  if (!kept.middle) {
    make_attention(now, input, kept);
    const buffer branch = workspace(now, hidden);
    out_.forward(now.stream, rows(now, kept.attended, hidden), rows(now, branch, hidden));
    now.memory.make(kept.middle, bytes(now, hidden), [&] {
      velo::add(now.stream, velo::add_args()
                                .a(rows(now, input, hidden))
                                .b(rows(now, branch, hidden))
                                .y(rows(now, kept.middle, hidden)));
    });
  }
  if (!kept.feed_forward_input)
    norm(now, kept.middle, feed_forward_gain_, kept.feed_forward_input, kept.feed_forward_rstd);
  if (!kept.gates)
    now.memory.make(kept.gates, bytes(now, 2 * inner), [&] {
      gate_up_.forward(now.stream, rows(now, kept.feed_forward_input, hidden),
                       rows(now, kept.gates, 2 * inner));
    });
  if (!kept.gated)
    now.memory.make(kept.gated, bytes(now, inner), [&] {
      velo::swiglu(
          now.stream,
          velo::swiglu_args().x(rows(now, kept.gates, 2 * inner)).y(rows(now, kept.gated, inner)));
    });
}

}  // namespace decoder
