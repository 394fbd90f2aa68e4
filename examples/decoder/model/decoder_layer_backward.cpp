// The operators of a layer's backward pass in their order.
#include <utility>

#include "examples/decoder/model/decoder_layer.hpp"
#include "examples/decoder/model/documents.hpp"
#include "examples/decoder/model/gradients.hpp"
#include "examples/decoder/model/shared_rows.hpp"

namespace decoder {

void decoder_layer::backward(const pass& now, buffer& gradient, const buffer& input,
                             layer_activations& kept, bool deferred) const {
  make_feed_forward(now, input, kept);
  const buffer added = workspace(now, stream_bytes(now));
  const velo::tensor_view branch = stream(now, added);
  feed_forward_backward(now, stream(now, gradient), branch, kept, deferred);
  add_branch(now, gradient, branch, deferred ? &kept.output_gradient : nullptr);
  make_attention(now, input, kept);
  attention_backward(now, stream(now, gradient), branch, input, kept, deferred);
  add_branch(now, gradient, branch, deferred ? &kept.middle_gradient : nullptr);
  if (!deferred) kept = {};
}

// Adds a block's branch to the gradient. `former` takes the gradient as it was before.
void decoder_layer::add_branch(const pass& now, buffer& gradient, const velo::tensor_view& branch,
                               buffer* former) const {
  const velo::tensor_view through = stream(now, gradient);
  if (former == nullptr && !gradient.is_borrowed()) {
    velo::add(now.stream, velo::add_args().a(through).b(branch).y(through));
    return;
  }
  buffer sum = now.memory.take(stream_bytes(now), VELO_PURPOSE_ACTIVATION);
  velo::add(now.stream, velo::add_args().a(through).b(branch).y(stream(now, sum)));
  std::swap(gradient, sum);
  if (former != nullptr) *former = std::move(sum);
}

void decoder_layer::weight_gradients(const pass& now, layer_activations& kept) const {
  const std::int64_t inner = part_.inner;
  const auto add = [&](const linear& matrix, const velo::tensor_view& x,
                       const velo::tensor_view& dy) { matrix.weight_gradient(now.stream, x, dy); };
  add(down_, tokens(now, kept.gated, inner),
      all_rows(now, stream(now, kept.output_gradient)).view());
  add(gate_up_, all_rows(now, stream(now, kept.feed_forward_input)).view(),
      tokens(now, kept.gates, 2 * inner));
  add(out_, tokens(now, kept.attended, part_.attended()),
      all_rows(now, stream(now, kept.middle_gradient)).view());
  add(qkv_, all_rows(now, stream(now, kept.attention_input)).view(),
      tokens(now, kept.projected_gradient, part_.qkv()));
  kept = {};
}

// Writes the feed-forward block's share of the gradient to `branch`, as attention_backward does for
// its block.
void decoder_layer::feed_forward_backward(const pass& now, const velo::tensor_view& gradient,
                                          const velo::tensor_view& branch, layer_activations& kept,
                                          bool deferred) const {
  const std::int64_t inner = part_.inner;
  const velo::tensor_view gates = tokens(now, kept.gates, 2 * inner);
  {
    const all_rows dy(now, gradient);
    if (!deferred) {
      down_.weight_gradient(now.stream, tokens(now, kept.gated, inner), dy.view());
      kept.gated = {};
    }
    const buffer backward = workspace(now, bytes(now, inner));
    const velo::tensor_view gated = tokens(now, backward, inner);
    down_.input_gradient(now.stream, dy.view(), gated);
    velo::swiglu_backward(now.stream, velo::swiglu_backward_args().dy(gated).x(gates).dx(gates));
  }
  if (!deferred) {
    gate_up_.weight_gradient(now.stream, all_rows(now, stream(now, kept.feed_forward_input)).view(),
                             gates);
    kept.feed_forward_input = {};
  }
  input_gradient(now, gate_up_, gates, branch);
  if (!deferred) kept.gates = {};
  norm_backward(now, stream(now, kept.middle), feed_forward_gain_, kept.feed_forward_rstd, branch,
                feed_forward_gain_gradient_);
}

// The gradients of queries, keys and values, before their rotation is undone.
void decoder_layer::attend_backward(const pass& now, const layer_activations& kept,
                                    const velo::tensor_view& attended, const buffer& qkv) const {
  const std::int64_t queries = part_.heads, keys = part_.kv_heads;
  const context_parallel& context = now.parallel.context;
  const attention_tensors of = attention_of(now, kept);
  const velo::tensor_view dquery = attention_heads(now, qkv, 0, queries),
                          dkey = attention_heads(now, qkv, queries, keys),
                          dvalue = attention_heads(now, qkv, queries + keys, keys);
  const auto with_gradients = [&](auto arguments) {
    arguments.dy(attended).dquery(dquery).dkey(dkey).dvalue(dvalue);
    return filled(arguments, of);
  };
  if (context.is_alone()) {
    const document_ends ends(now);
    velo::fusion_attention_backward(
        now.stream, ends.fill(with_gradients(velo::fusion_attention_backward_args().sparse_mode(
                        velo::attention_sparse_mode::left_up_causal))));
    return;
  }
  auto arguments = velo::context_parallel_attention_backward_args();
  if (kept.kept_keys) arguments.kept(of.others);
  arguments.group(context.group()).plan(now.share().of(keeps_keys_).plan);
  velo::context_parallel_attention_backward(now.stream, with_gradients(arguments));
}

void decoder_layer::attention_backward(const pass& now, const velo::tensor_view& gradient,
                                       const velo::tensor_view& branch, const buffer& input,
                                       layer_activations& kept, bool deferred) const {
  kept.middle = {};
  kept.feed_forward_rstd = {};
  buffer qkv;
  {
    const all_rows dy(now, gradient);
    if (!deferred)
      out_.weight_gradient(now.stream, tokens(now, kept.attended, part_.attended()), dy.view());
    qkv = workspace(now, bytes(now, part_.qkv()));
    const buffer attended = workspace(now, bytes(now, part_.attended()));
    out_.input_gradient(now.stream, dy.view(), tokens(now, attended, part_.attended()));
    attend_backward(now, kept, per_head(now, attended), qkv);
  }
  if (!deferred) kept.attended = {};
  kept.projected = {};
  kept.kept_keys = {};
  kept.softmax_max = {};
  kept.softmax_sum = {};
  const velo::tensor_view rotated = heads(now, qkv, 0, part_.heads + part_.kv_heads);
  const rotation turned(now);
  velo::rotary_position_embedding_backward(
      now.stream,
      turned.fill(velo::rotary_position_embedding_backward_args().dy(rotated).dx(rotated)));
  const velo::tensor_view projected = tokens(now, qkv, part_.qkv());
  if (!deferred)
    qkv_.weight_gradient(now.stream, all_rows(now, stream(now, kept.attention_input)).view(),
                         projected);
  input_gradient(now, qkv_, projected, branch);
  norm_backward(now, stream(now, input), attention_gain_, kept.attention_rstd, branch,
                attention_gain_gradient_);
  kept.attention_rstd = {};
  if (deferred) kept.projected_gradient = std::move(qkv);
}

}  // namespace decoder
