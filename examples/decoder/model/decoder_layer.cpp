// The operators of a layer in their order.
#include "examples/decoder/model/decoder_layer.hpp"

#include <cmath>

namespace decoder {
namespace {

std::int64_t qkv_width(const model_settings& m) {
  return m.hidden + 2 * m.kv_heads * m.head_dim();
}

double attention_scale(const model_settings& m) {
  return 1 / std::sqrt(static_cast<double>(m.head_dim()));
}

velo::tensor_view column(const pass& now, const buffer& of) {
  return {of.floats(), {now.batch.tokens(), 1}};
}

std::int64_t float_bytes(const pass& now, std::int64_t width) {
  return now.room.tokens() * width * 4;
}

constexpr velo_purpose kept_purpose = VELO_PURPOSE_ACTIVATION, passing = VELO_PURPOSE_WORKSPACE;

}  // namespace

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

void decoder_layer::refresh(const velo::stream_ref& stream) {
  for (linear* each : {&qkv_, &out_, &gate_up_, &down_}) each->refresh(stream);
}

std::int64_t decoder_layer::bytes(const pass& now, std::int64_t width) const {
  return now.room.tokens() * width * (type_.bits / 8);
}

buffer decoder_layer::make(const pass& now, std::int64_t width, velo_purpose purpose) const {
  return now.memory.take(bytes(now, width), purpose);
}

velo::tensor_view decoder_layer::rows(const pass& now, const buffer& of, std::int64_t width) const {
  return {of.data(), type_, {now.batch.tokens(), width}};
}

// Some heads of a projection, [sequences, length, count, head width], where they lie.
velo::tensor_view decoder_layer::heads(const pass& now, const buffer& qkv, std::int64_t first,
                                       std::int64_t count) const {
  const std::int64_t width = model_.head_dim(), row = qkv_width(model_);
  return {qkv.data() + first * width * (type_.bits / 8),
          type_,
          {now.batch.sequences, now.batch.length, count, width},
          {now.batch.length * row, row, width, 1}};
}

// What the query heads give, and what softmax keeps of each.
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
  const buffer branch = make(now, hidden, passing);
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

// Up to what core attention gives.
void decoder_layer::make_attention(const pass& now, const buffer& input,
                                   layer_activations& kept) const {
  if (!kept.attention_input)
    norm(now, input, attention_gain_, kept.attention_input, kept.attention_rstd);
  if (!kept.projected)
    now.memory.make(kept.projected, bytes(now, qkv_width(model_)), [&] {
      qkv_.forward(now.stream, rows(now, kept.attention_input, model_.hidden),
                   rows(now, kept.projected, qkv_width(model_)));
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
                               .scale(attention_scale(model_))
                               .sparse_mode(velo::attention_sparse_mode::left_up_causal));
  });
}

// Up to what the product `down` takes.
void decoder_layer::make_feed_forward(const pass& now, const buffer& input,
                                      layer_activations& kept) const {
  const std::int64_t hidden = model_.hidden, inner = model_.inner;
  if (!kept.middle) {
    make_attention(now, input, kept);
    const buffer branch = make(now, hidden, passing);
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

void decoder_layer::backward(const pass& now, buffer& gradient, const buffer& input,
                             layer_activations& kept, bool later) const {
  make_feed_forward(now, input, kept);
  const buffer added = make(now, model_.hidden, passing);
  const velo::tensor_view branch = rows(now, added, model_.hidden);
  feed_forward_backward(now, rows(now, gradient, model_.hidden), branch, kept, later);
  join(now, gradient, branch, later ? &kept.output_gradient : nullptr);
  make_attention(now, input, kept);
  attention_backward(now, rows(now, gradient, model_.hidden), branch, input, kept, later);
  join(now, gradient, branch, later ? &kept.middle_gradient : nullptr);
  if (!later) kept = {};
}

// Adds what a block's branch gives to the gradient; `former` gets what that was.
void decoder_layer::join(const pass& now, buffer& gradient, const velo::tensor_view& branch,
                         buffer* former) const {
  const velo::tensor_view through = rows(now, gradient, model_.hidden);
  if (former == nullptr && !gradient.is_borrowed()) {
    velo::add(now.stream, velo::add_args().a(through).b(branch).y(through));
    return;
  }
  buffer sum = make(now, model_.hidden, kept_purpose);
  velo::add(now.stream, velo::add_args().a(through).b(branch).y(rows(now, sum, model_.hidden)));
  std::swap(gradient, sum);
  if (former != nullptr) *former = std::move(sum);
}

void decoder_layer::weight_gradients(const pass& now, layer_activations& kept) const {
  const std::int64_t hidden = model_.hidden, inner = model_.inner, width = qkv_width(model_);
  down_.weight_gradient(now.stream, rows(now, kept.gated, inner),
                        rows(now, kept.output_gradient, hidden));
  gate_up_.weight_gradient(now.stream, rows(now, kept.feed_forward_input, hidden),
                           rows(now, kept.gates, 2 * inner));
  out_.weight_gradient(now.stream, rows(now, kept.attended, hidden),
                       rows(now, kept.middle_gradient, hidden));
  qkv_.weight_gradient(now.stream, rows(now, kept.attention_input, hidden),
                       rows(now, kept.projected_gradient, width));
  kept = {};
}

// Leaves in `branch` what the feed-forward block adds to the gradient; attention_backward does the
// same.
void decoder_layer::feed_forward_backward(const pass& now, const velo::tensor_view& gradient,
                                          const velo::tensor_view& branch, layer_activations& kept,
                                          bool later) const {
  const std::int64_t hidden = model_.hidden, inner = model_.inner;
  const velo::tensor_view gates = rows(now, kept.gates, 2 * inner);
  if (!later) {
    down_.weight_gradient(now.stream, rows(now, kept.gated, inner), gradient);
    kept.gated = {};
  }
  {
    const buffer backward = make(now, inner, passing);
    const velo::tensor_view gated = rows(now, backward, inner);
    down_.input_gradient(now.stream, gradient, gated);
    velo::swiglu_backward(now.stream, velo::swiglu_backward_args().dy(gated).x(gates).dx(gates));
  }
  if (!later) {
    gate_up_.weight_gradient(now.stream, rows(now, kept.feed_forward_input, hidden), gates);
    kept.feed_forward_input = {};
  }
  gate_up_.input_gradient(now.stream, gates, branch);
  if (!later) kept.gates = {};
  velo::rms_norm_backward(now.stream, velo::rms_norm_backward_args()
                                          .dy(branch)
                                          .x(rows(now, kept.middle, hidden))
                                          .gamma(feed_forward_gain_)
                                          .rstd(column(now, kept.feed_forward_rstd))
                                          .dx(branch)
                                          .dgamma(feed_forward_gain_gradient_)
                                          .accumulate(true));
}

void decoder_layer::attention_backward(const pass& now, const velo::tensor_view& gradient,
                                       const velo::tensor_view& branch, const buffer& input,
                                       layer_activations& kept, bool later) const {
  const std::int64_t hidden = model_.hidden, queries = model_.heads, keys = model_.kv_heads;
  kept.middle = {}, kept.feed_forward_rstd = {};
  if (!later) out_.weight_gradient(now.stream, rows(now, kept.attended, hidden), gradient);
  buffer qkv = make(now, qkv_width(model_), passing);
  const velo::tensor_view projected = rows(now, qkv, qkv_width(model_));
  {
    const buffer attended = make(now, hidden, passing);
    out_.input_gradient(now.stream, gradient, rows(now, attended, hidden));
    velo::fusion_attention_backward(now.stream,
                                    velo::fusion_attention_backward_args()
                                        .dy(per_head(now, attended))
                                        .query(heads(now, kept.projected, 0, queries))
                                        .key(heads(now, kept.projected, queries, keys))
                                        .value(heads(now, kept.projected, queries + keys, keys))
                                        .attention_out(per_head(now, kept.attended))
                                        .softmax_max(sums(now, kept.softmax_max))
                                        .softmax_sum(sums(now, kept.softmax_sum))
                                        .dquery(heads(now, qkv, 0, queries))
                                        .dkey(heads(now, qkv, queries, keys))
                                        .dvalue(heads(now, qkv, queries + keys, keys))
                                        .scale(attention_scale(model_))
                                        .sparse_mode(velo::attention_sparse_mode::left_up_causal));
  }
  if (!later) kept.attended = {};
  kept.projected = {}, kept.softmax_max = {}, kept.softmax_sum = {};
  const velo::tensor_view rotated = heads(now, qkv, 0, queries + keys);
  velo::rotary_position_embedding_backward(now.stream,
                                           velo::rotary_position_embedding_backward_args()
                                               .dy(rotated)
                                               .cos(now.angles.cosines())
                                               .sin(now.angles.sines())
                                               .dx(rotated));
  if (!later) qkv_.weight_gradient(now.stream, rows(now, kept.attention_input, hidden), projected);
  qkv_.input_gradient(now.stream, projected, branch);
  velo::rms_norm_backward(now.stream, velo::rms_norm_backward_args()
                                          .dy(branch)
                                          .x(rows(now, input, hidden))
                                          .gamma(attention_gain_)
                                          .rstd(column(now, kept.attention_rstd))
                                          .dx(branch)
                                          .dgamma(attention_gain_gradient_)
                                          .accumulate(true));
  kept.attention_rstd = {};
  if (later) kept.projected_gradient = std::move(qkv);
}

}  // namespace decoder
