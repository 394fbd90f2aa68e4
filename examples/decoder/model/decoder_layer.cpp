// A layer's weights, and the operators of its forward pass in their order.
#include "examples/decoder/model/decoder_layer.hpp"

#include "examples/decoder/model/documents.hpp"
#include "examples/decoder/model/shared_rows.hpp"

namespace decoder {
namespace {

std::int64_t float_bytes(std::int64_t count) {
  return count * 4;
}

}  // namespace

decoder_layer::decoder_layer(const velo::context& context, const weights& from,
                             const model_settings& m, const layer_layout& at, bool training,
                             layer_keys keys, const expert_parallel& experts, std::size_t number)
    : model_(m),
      part_(from.layout().widths),
      type_(dtype_of(from.type())),
      keys_(keys),
      owns_keys_(at.owns_keys),
      projected_(owns_keys_ && !m.is_latent() ? part_.qkv() : part_.queries()),
      out_(context, from, at.out, part_.hidden, part_.attended(), training),
      attention_gain_(from.weight(at.attention_norm, {part_.hidden})),
      feed_forward_gain_(from.weight(at.feed_forward_norm, {part_.hidden})) {
  if (m.is_latent())
    latent_.emplace(context, from, m, at, training);
  else
    qkv_.emplace(context, from, at.qkv, projected_, part_.hidden, training);
  if (m.has_experts(number)) experts_.emplace(context, from, m, at, experts, training, number);
  if (at.gate_up >= 0)
    gated_.emplace(context, from, at, experts_ ? part_.shared : part_.inner, training);
  if (!training) return;
  attention_gain_gradient_ = from.gradient(at.attention_norm, {part_.hidden});
  feed_forward_gain_gradient_ = from.gradient(at.feed_forward_norm, {part_.hidden});
  keys_gradient_ = from.gradient(at.qkv + part_.queries() * part_.hidden,
                                 {projected_ - part_.queries(), part_.hidden});
}

void decoder_layer::refresh(const velo::stream_ref& stream) {
  if (qkv_) qkv_->refresh(stream);
  if (latent_) latent_->refresh(stream);
  out_.refresh(stream);
  if (experts_) experts_->refresh(stream);
  if (gated_) gated_->refresh(stream);
}

std::int64_t decoder_layer::stream_bytes(const pass& now) const {
  return now.room_of_rows() * part_.hidden * (type_.bits / 8);
}
std::int64_t decoder_layer::bytes(const pass& now, std::int64_t width) const {
  return now.room.tokens() * width * (type_.bits / 8);
}

buffer decoder_layer::workspace(const pass& now, std::int64_t bytes) const {
  return now.memory.take(bytes, VELO_PURPOSE_WORKSPACE);
}

velo::tensor_view decoder_layer::stream(const pass& now, const buffer& of) const {
  return {of.data(), type_, {now.rows(), part_.hidden}};
}
velo::tensor_view decoder_layer::tokens(const pass& now, const buffer& of,
                                        std::int64_t width) const {
  return {of.data(), type_, {now.batch.tokens(), width}};
}
velo::tensor_view decoder_layer::column(const pass& now, const buffer& of) const {
  return {of.floats(), {now.rows(), 1}};
}

// A view of some heads of a projection [tokens, row]: [sequences, length, count, head width].
velo::tensor_view decoder_layer::heads(const pass& now, const buffer& of, std::int64_t row,
                                       std::int64_t first, std::int64_t count) const {
  const std::int64_t width = part_.head_dim;
  return {of.data() + first * width * (type_.bits / 8),
          type_,
          {now.batch.sequences, now.batch.length, count, width},
          {now.batch.length * row, row, width, 1}};
}

// The same for attention, to which documents are one sequence: [tokens, count, head width].
velo::tensor_view decoder_layer::attention_heads(const pass& now, const buffer& of,
                                                 std::int64_t row, std::int64_t first,
                                                 std::int64_t count) const {
  const velo::tensor_view all = heads(now, of, row, first, count);
  if (now.documents == nullptr) return all;
  const std::int64_t width = part_.head_dim;
  return {all.get()->data, type_, {now.batch.length, count, width}, {row, width, 1}};
}

// The heads of this layer's projection that are rotated: queries, and its own keys.
velo::tensor_view decoder_layer::rotated_heads(const pass& now, const buffer& projected) const {
  return heads(now, projected, projected_, 0, part_.heads + (owns_keys_ ? part_.kv_heads : 0));
}

// Views of the attention's output, of its softmax statistics and of what it keeps of other ranks.
velo::tensor_view decoder_layer::per_head(const pass& now, const buffer& of) const {
  const std::int64_t width = part_.value_dim;
  if (now.documents) return {of.data(), type_, {now.batch.length, part_.heads, width}};
  return {of.data(), type_, {now.batch.sequences, now.batch.length, part_.heads, width}};
}
velo::tensor_view decoder_layer::sums(const pass& now, const buffer& of) const {
  const bool is_alone = !now.parallel.context.has_plan();
  if (now.documents && is_alone) return {of.floats(), {now.batch.length, part_.heads}};
  if (is_alone) return {of.floats(), {now.batch.sequences, part_.heads, now.batch.length}};
  const sequence_share::saved& saves = now.share().of(keys_).saves;
  if (now.documents) return {of.floats(), {saves.heads, saves.queries}};
  return {of.floats(), {now.batch.sequences, saves.heads, saves.queries}};
}
velo::tensor_view decoder_layer::others(const pass& now, const buffer& kept_keys,
                                        std::int64_t count) const {
  return {kept_keys.data(), type_, {now.batch.sequences * count}};
}

// The elements of a sequence that attention of the layer which owns the keys has kept.
std::int64_t decoder_layer::kept_by_owner(const pass& now) const {
  if (owns_keys_ || now.parallel.context.is_alone()) return 0;
  return now.share().of({keys_.cached, VELO_SEQUENCE_KEYS_SHARED}).saves.kept;
}

void decoder_layer::forward(const pass& now, const buffer& input, layer_activations& kept,
                            buffer& output) const {
  make_feed_forward(now, input, kept);
  const buffer branch = workspace(now, stream_bytes(now));
  if (experts_) experts_->combine(now, kept, stream(now, branch));
  if (gated_ && !experts_) gated_->finish(now, gated_of(kept), stream(now, branch));
  if (gated_ && experts_) {
    const buffer shared = workspace(now, stream_bytes(now));
    gated_->finish(now, gated_of(kept), stream(now, shared));
    add_to(now, stream(now, branch), shared);
  }
  add_output(now, kept, stream(now, branch), output);
}

void decoder_layer::add_output(const pass& now, const layer_activations& kept,
                               const velo::tensor_view& branch, buffer& output) const {
  now.memory.make(output, stream_bytes(now), [&] {
    velo::add(now.stream,
              velo::add_args().a(stream(now, kept.middle)).b(branch).y(stream(now, output)));
  });
}

// The activations that the feed-forward block, or the shared expert, keeps.
gated_block::buffers decoder_layer::gated_of(layer_activations& kept) const {
  expert_activations& e = kept.expert;
  return {kept.feed_forward_input, experts_ ? e.shared_gates : kept.gates,
          experts_ ? e.shared_gated : kept.gated};
}

// Adds rows of the stream.
void decoder_layer::add_to(const pass& now, const velo::tensor_view& sum,
                           const buffer& other) const {
  velo::add(now.stream, velo::add_args().a(sum).b(stream(now, other)).y(sum));
}

// A shared expert is recomputed on all ranks, whatever the load of theirs: tensor ranks compute it
// together.
void decoder_layer::recompute(layer_activations& kept, const layer_recompute& what) {
  if (what.has(VELO_RECOMPUTE_FULL))
    kept.each_kept([&](buffer& each) {
      if (&each != &kept.middle || !what.keeps_middle) each.recompute();
    });
  if (what.has(VELO_RECOMPUTE_SELECTIVE))
    for (buffer* each : {&kept.attended, &kept.kept_keys, &kept.softmax_max, &kept.softmax_sum})
      each->recompute();
  if (what.has(VELO_RECOMPUTE_ACTIVATION))
    for (buffer* each : {&kept.gated, &kept.expert.shared_gated}) each->recompute();
  if (what.has(VELO_RECOMPUTE_FEED_FORWARD)) {
    for (buffer* each : {&kept.gates, &kept.gated, &kept.expert.output, &kept.expert.shared_gates,
                         &kept.expert.shared_gated})
      each->recompute();
    if (what.experts != expert_part::computed) kept.expert.input.recompute();
    if (what.experts == expert_part::all) kept.feed_forward_input.recompute();
    kept.expert.recompute_load = what.load;
  }
  if (what.has(VELO_RECOMPUTE_NORM))
    for (buffer* each : {&kept.attention_input, &kept.feed_forward_input}) each->recompute();
}

void decoder_layer::norm(const pass& now, const buffer& x, const velo::tensor_view& gain, buffer& y,
                         buffer& rstd) const {
  if (!rstd) now.memory.make(rstd, float_bytes(now.room_of_rows()));
  now.memory.make(y, stream_bytes(now), [&] {
    now.parallel.hidden.norm(now.stream, {stream(now, x), gain, column(now, rstd)}, stream(now, y),
                             model_.norm_epsilon);
  });
}

bool decoder_layer::has_shared(const pass& now, const layer_activations& kept) const {
  return kept.projected && (kept.kept_keys || now.share().of(keys_).saves.kept == 0);
}

void decoder_layer::make_shared(const pass& now, const buffer& input,
                                layer_activations& kept) const {
  make_projected(now, input, kept);
  if (!has_shared(now, kept)) make_attention(now, input, kept);
}

// Computes the missing activations up to the output of core attention.
void decoder_layer::make_attention(const pass& now, const buffer& input,
                                   layer_activations& kept) const {
  make_projected(now, input, kept);
  if (!kept.attended) attend(now, kept);
}

void decoder_layer::make_projected(const pass& now, const buffer& input,
                                   layer_activations& kept) const {
  if (!kept.attention_input)
    norm(now, input, attention_gain_, kept.attention_input, kept.attention_rstd);
  if (latent_) return latent_->make(now, kept);
  const bool is_exchanged = !now.parallel.context.heads().are_whole();
  if (!kept.projected && now.split != nullptr && (owns_keys_ || is_exchanged))
    project_split(now, kept);
  else if (!kept.projected)
    now.memory.make(kept.projected, bytes(now, projected_),
                    [&] { project_rotated(now, kept.attention_input, kept.projected); });
}

// Writes the projection of the normed input, queries and keys rotated.
void decoder_layer::project_rotated(const pass& now, const buffer& input, const buffer& to) const {
  project(now, *qkv_, stream(now, input), tokens(now, to, projected_));
  const velo::tensor_view rotated = rotated_heads(now, to);
  const rotation turned(now);
  velo::rotary_position_embedding(
      now.stream, turned.fill(velo::rotary_position_embedding_args().x(rotated).y(rotated)));
}

void decoder_layer::attend(const pass& now, layer_activations& kept) const {
  const context_parallel& context = now.parallel.context;
  const sequence_share::saved& saves = now.share().of(keys_).saves;
  const std::int64_t sums = now.split != nullptr ? sums_of_split(now)
                            : context.has_plan() ? now.room.sequences * saves.heads * saves.queries
                                                 : now.room.tokens() * part_.heads;
  now.memory.make(kept.attended, bytes(now, part_.attended()));
  if (saves.kept > 0)
    now.memory.make(kept.kept_keys, now.room.sequences * saves.kept * (type_.bits / 8));
  now.memory.make(kept.softmax_max, float_bytes(sums));
  now.memory.make(kept.softmax_sum, float_bytes(sums), [&] {
    if (now.split != nullptr)
      attend_split(now, kept);
    else if (context.is_alone())
      attend_alone(now, kept);
    else
      attend_together(now, kept);
  });
}

decoder_layer::attention_tensors decoder_layer::attention_of(const pass& now,
                                                             const layer_activations& kept) const {
  const std::int64_t queries = part_.heads, keys = part_.kv_heads, row = part_.qkv();
  const buffer& with_keys = owns_keys_ ? kept.projected : kept.owner->projected;
  const latent_activations& l = kept.latent;
  return {attention_heads(now, kept.projected, projected_, 0, queries),
          latent_ ? attention_heads(now, l.keys, projected_, 0, keys)
                  : attention_heads(now, with_keys, row, queries, keys),
          latent_ ? latent_->values(now, l.expanded)
                  : attention_heads(now, with_keys, row, queries + keys, keys),
          per_head(now, kept.attended),
          sums(now, kept.softmax_max),
          sums(now, kept.softmax_sum),
          others(now, kept.kept_keys, now.share().of(keys_).saves.kept),
          takes_keys(now) ? others(now, kept.owner->kept_keys, kept_by_owner(now))
                          : velo::tensor_view()};
}

void decoder_layer::attend_alone(const pass& now, const layer_activations& kept) const {
  const attention_tensors of = attention_of(now, kept);
  const document_ends ends(now);
  velo::fusion_attention(now.stream,
                         ends.fill(filled(velo::fusion_attention_args().sparse_mode(
                                              velo::attention_sparse_mode::left_up_causal),
                                          of)));
}

void decoder_layer::attend_together(const pass& now, const layer_activations& kept) const {
  const attention_tensors of = attention_of(now, kept);
  velo::context_parallel_attention(
      now.stream, filled_together(now, velo::context_parallel_attention_args(), kept, of));
}

// Computes the missing activations up to the input of the feed-forward block.
void decoder_layer::make_middle(const pass& now, const buffer& input,
                                layer_activations& kept) const {
  if (!kept.middle) {
    make_attention(now, input, kept);
    const buffer branch = workspace(now, stream_bytes(now));
    return_to_stream(now, out_, tokens(now, kept.attended, part_.attended()), stream(now, branch));
    now.memory.make(kept.middle, stream_bytes(now), [&] {
      velo::add(now.stream, velo::add_args()
                                .a(stream(now, input))
                                .b(stream(now, branch))
                                .y(stream(now, kept.middle)));
    });
  }
  if (!kept.feed_forward_input)
    norm(now, kept.middle, feed_forward_gain_, kept.feed_forward_input, kept.feed_forward_rstd);
}

// Computes the missing activations up to the input of the product `down`.
void decoder_layer::make_feed_forward(const pass& now, const buffer& input,
                                      layer_activations& kept) const {
  make_middle(now, input, kept);
  if (experts_) experts_->make(now, kept);
  if (gated_) gated_->make(now, gated_of(kept));
}

}  // namespace decoder
