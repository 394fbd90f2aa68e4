// The operators of a layer's backward pass in their order.
#include <utility>

#include "examples/decoder/model/decoder_layer.hpp"
#include "examples/decoder/model/gradients.hpp"

namespace decoder {

void decoder_layer::backward(const pass& now, buffer& gradient, const buffer& input,
                             layer_activations& kept, bool deferred) const {
  make_feed_forward(now, input, kept);
  const buffer added = workspace(now, model_.hidden);
  const velo::tensor_view branch = rows(now, added, model_.hidden);
  feed_forward_backward(now, rows(now, gradient, model_.hidden), branch, kept, deferred);
  add_branch(now, gradient, branch, deferred ? &kept.output_gradient : nullptr);
  make_attention(now, input, kept);
  attention_backward(now, rows(now, gradient, model_.hidden), branch, input, kept, deferred);
  add_branch(now, gradient, branch, deferred ? &kept.middle_gradient : nullptr);
  if (!deferred) kept = {};
}

// Adds a block's branch to the gradient. `former` takes the gradient as it was before.
void decoder_layer::add_branch(const pass& now, buffer& gradient, const velo::tensor_view& branch,
                               buffer* former) const {
  const velo::tensor_view through = rows(now, gradient, model_.hidden);
  if (former == nullptr && !gradient.is_borrowed()) {
    velo::add(now.stream, velo::add_args().a(through).b(branch).y(through));
    return;
  }
  buffer sum = now.memory.take(bytes(now, model_.hidden), VELO_PURPOSE_ACTIVATION);
  velo::add(now.stream, velo::add_args().a(through).b(branch).y(rows(now, sum, model_.hidden)));
  std::swap(gradient, sum);
  if (former != nullptr) *former = std::move(sum);
}

void decoder_layer::weight_gradients(const pass& now, layer_activations& kept) const {
  const std::int64_t hidden = model_.hidden, inner = model_.inner, width = model_.qkv_width();
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

// Writes the feed-forward block's share of the gradient to `branch`, as attention_backward does for
// its block.
void decoder_layer::feed_forward_backward(const pass& now, const velo::tensor_view& gradient,
                                          const velo::tensor_view& branch, layer_activations& kept,
                                          bool deferred) const {
  const std::int64_t hidden = model_.hidden, inner = model_.inner;
  const velo::tensor_view gates = rows(now, kept.gates, 2 * inner);
  if (!deferred) {
    down_.weight_gradient(now.stream, rows(now, kept.gated, inner), gradient);
    kept.gated = {};
  }
  {
    const buffer backward = workspace(now, inner);
    const velo::tensor_view gated = rows(now, backward, inner);
    down_.input_gradient(now.stream, gradient, gated);
    velo::swiglu_backward(now.stream, velo::swiglu_backward_args().dy(gated).x(gates).dx(gates));
  }
  if (!deferred) {
    gate_up_.weight_gradient(now.stream, rows(now, kept.feed_forward_input, hidden), gates);
    kept.feed_forward_input = {};
  }
  gate_up_.input_gradient(now.stream, gates, branch);
  if (!deferred) kept.gates = {};
  norm_backward(now, rows(now, kept.middle, hidden), feed_forward_gain_, kept.feed_forward_rstd,
                branch, feed_forward_gain_gradient_);
}

void decoder_layer::attention_backward(const pass& now, const velo::tensor_view& gradient,
                                       const velo::tensor_view& branch, const buffer& input,
                                       layer_activations& kept, bool deferred) const {
  const std::int64_t hidden = model_.hidden, queries = model_.heads, keys = model_.kv_heads;
  kept.middle = {};
  kept.feed_forward_rstd = {};
  if (!deferred) out_.weight_gradient(now.stream, rows(now, kept.attended, hidden), gradient);
  buffer qkv = workspace(now, model_.qkv_width());
  const velo::tensor_view projected = rows(now, qkv, model_.qkv_width());
  {
    const buffer attended = workspace(now, hidden);
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
                                        .scale(model_.attention_scale())
                                        .sparse_mode(velo::attention_sparse_mode::left_up_causal));
  }
  if (!deferred) kept.attended = {};
  kept.projected = {};
  kept.softmax_max = {};
  kept.softmax_sum = {};
  const velo::tensor_view rotated = heads(now, qkv, 0, queries + keys);
  velo::rotary_position_embedding_backward(now.stream,
                                           velo::rotary_position_embedding_backward_args()
                                               .dy(rotated)
                                               .cos(now.angles.cosines())
                                               .sin(now.angles.sines())
                                               .dx(rotated));
  if (!deferred)
    qkv_.weight_gradient(now.stream, rows(now, kept.attention_input, hidden), projected);
  qkv_.input_gradient(now.stream, projected, branch);
  norm_backward(now, rows(now, input, hidden), attention_gain_, kept.attention_rstd, branch,
                attention_gain_gradient_);
  kept.attention_rstd = {};
  if (deferred) kept.projected_gradient = std::move(qkv);
}

}  // namespace decoder
