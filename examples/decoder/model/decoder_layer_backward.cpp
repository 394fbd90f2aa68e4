// The operators of a layer's backward pass in their order.
#include <cstring>
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
  attention_to_input(now, gradient, branch, input, kept, deferred);
}

// The gradient goes back through attention's block; `branch` is room for the block's share.
void decoder_layer::attention_to_input(const pass& now, buffer& gradient,
                                       const velo::tensor_view& branch, const buffer& input,
                                       layer_activations& kept, bool deferred) const {
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
  if (experts_) experts_->weight_gradients(now, kept);
  if (gated_) gated_->weight_gradients(now, gated_of(kept), stream(now, kept.output_gradient));
  return_weight_gradient(now, out_, tokens(now, kept.attended, part_.attended()),
                         stream(now, kept.middle_gradient));
  if (latent_)
    latent_->weight_gradients(now, kept);
  else
    project_weight_gradient(now, *qkv_, stream(now, kept.attention_input),
                            tokens(now, kept.projected_gradient, projected_));
  kept = {};
}

void decoder_layer::sum_key_gradients(const pass& now) const {
  const velo::group* const ranks = now.parallel.key_ranks;
  if (ranks != nullptr && owns_keys_) ranks->all_reduce(now.stream, keys_gradient_, keys_gradient_);
}

// Writes the feed-forward block's share of the gradient to `branch`, as attention_backward does for
// its block.
void decoder_layer::feed_forward_backward(const pass& now, const velo::tensor_view& gradient,
                                          const velo::tensor_view& branch, layer_activations& kept,
                                          bool deferred) const {
  if (experts_) experts_->backward(now, gradient, branch, kept, deferred);
  if (gated_ && !experts_) gated_->backward(now, gradient, branch, gated_of(kept), deferred);
  if (gated_ && experts_) {
    const buffer shared = workspace(now, stream_bytes(now));
    gated_->backward(now, gradient, stream(now, shared), gated_of(kept), deferred);
    add_to(now, branch, shared);
  }
  if (!deferred) kept.feed_forward_input = {};
  norm_backward(now, stream(now, kept.middle), feed_forward_gain_, kept.feed_forward_rstd, branch,
                feed_forward_gain_gradient_);
}

// Returns the gradient of the projection, before its rotation is undone. That of another layer's
// keys and values is left to that layer; to what was left to this one its own is added.
buffer decoder_layer::attend_backward(const pass& now, layer_activations& kept,
                                      const velo::tensor_view& attended) const {
  if (now.split != nullptr) return attend_split_backward(now, kept, attended);
  const context_parallel& context = now.parallel.context;
  const bool adds = static_cast<bool>(kept.shared_gradient);
  buffer projected = adds && context.is_alone() ? std::move(kept.shared_gradient)
                                                : workspace(now, bytes(now, projected_));
  if (!owns_keys_) kept.owner->shared_gradient = workspace(now, bytes(now, part_.qkv()));
  const buffer& with_keys = owns_keys_ ? projected : kept.owner->shared_gradient;
  latent_activations& l = kept.latent;
  if (latent_) {
    l.keys_gradient = workspace(now, bytes(now, projected_));
    l.expanded_gradient =
        now.memory.take(bytes(now, latent_->expanded_width()), VELO_PURPOSE_ACTIVATION);
  }
  const std::int64_t queries = part_.heads, keys = part_.kv_heads, row = part_.qkv();
  const attention_tensors of = attention_of(now, kept);
  const velo::tensor_view dquery = attention_heads(now, projected, projected_, 0, queries),
                          dkey = latent_
                                     ? attention_heads(now, l.keys_gradient, projected_, 0, keys)
                                     : attention_heads(now, with_keys, row, queries, keys),
                          dvalue = latent_
                                       ? latent_->values(now, l.expanded_gradient)
                                       : attention_heads(now, with_keys, row, queries + keys, keys);
  const auto with_gradients = [&](auto arguments) {
    arguments.dy(attended).dquery(dquery).dkey(dkey).dvalue(dvalue);
    return filled(arguments, of);
  };
  if (context.is_alone()) {
    const document_ends ends(now);
    velo::fusion_attention_backward(
        now.stream,
        ends.fill(with_gradients(velo::fusion_attention_backward_args()
                                     .sparse_mode(velo::attention_sparse_mode::left_up_causal)
                                     .accumulate(adds))));
    return projected;
  }
  velo::context_parallel_attention_backward(
      now.stream, with_gradients(filled_together(
                      now, velo::context_parallel_attention_backward_args(), kept, of)));
  if (adds) add_shared(now, kept.shared_gradient, projected);
  kept.shared_gradient = {};
  return projected;
}

// Adds the gradient of keys and values. The operator adds whole rows, so queries get zero.
void decoder_layer::add_shared(const pass& now, const buffer& shared, const buffer& to) const {
  const std::int64_t element = type_.bits / 8, row = part_.qkv() * element;
  for (std::int64_t i = 0; i < now.batch.tokens(); ++i)
    std::memset(shared.data() + i * row, 0, static_cast<std::size_t>(part_.attended() * element));
  const velo::tensor_view sum = tokens(now, to, part_.qkv());
  velo::add(now.stream, velo::add_args().a(sum).b(tokens(now, shared, part_.qkv())).y(sum));
}

// Undoes the rotation of the gradient `through`, in place.
void decoder_layer::projection_backward(const pass& now, const buffer& through,
                                        const velo::tensor_view& branch, layer_activations& kept,
                                        bool deferred) const {
  const velo::tensor_view rotated = rotated_heads(now, through);
  const rotation turned(now);
  velo::rotary_position_embedding_backward(
      now.stream,
      turned.fill(velo::rotary_position_embedding_backward_args().dy(rotated).dx(rotated)));
  project_backward(now, *qkv_,
                   {stream(now, kept.attention_input), tokens(now, through, projected_), branch},
                   deferred, nullptr);
}

void decoder_layer::attention_backward(const pass& now, const velo::tensor_view& gradient,
                                       const velo::tensor_view& branch, const buffer& input,
                                       layer_activations& kept, bool deferred) const {
  kept.middle = {};
  kept.feed_forward_rstd = {};
  buffer through;  // the gradient of the projection
  {
    const buffer attended = return_backward(now, out_, tokens(now, kept.attended, part_.attended()),
                                            gradient, deferred, nullptr);
    through = attend_backward(now, kept, per_head(now, attended));
  }
  if (!deferred) kept.attended = {};
  kept.projected = {};
  kept.kept_keys = {};
  kept.softmax_max = {};
  kept.softmax_sum = {};
  kept.latent.keys = {};
  kept.latent.expanded = {};
  if (latent_)
    latent_->backward(now, through, branch, kept, deferred);
  else
    projection_backward(now, through, branch, kept, deferred);
  norm_backward(now, stream(now, input), attention_gain_, kept.attention_rstd, branch,
                attention_gain_gradient_);
  kept.attention_rstd = {};
  if (deferred) kept.projected_gradient = std::move(through);
}

}  // namespace decoder
