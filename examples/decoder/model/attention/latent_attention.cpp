// The operators of latent attention's projections in their order, and the copies between them.
#include "examples/decoder/model/attention/latent_attention.hpp"

#include <cstring>
#include <utility>

#include "examples/decoder/model/documents.hpp"
#include "examples/decoder/model/gradients.hpp"
#include "examples/decoder/model/shared_rows.hpp"

namespace decoder {
namespace {

// The epsilon of these norms is that of transformers, whatever the other norms have.
constexpr double low_epsilon = 1e-6;

template <class T>
void add_heads(const T* from, std::int64_t heads, std::int64_t stride, std::int64_t width, T* to) {
  for (std::int64_t i = 0; i < width; ++i) {
    float sum = 0;
    for (std::int64_t head = 0; head < heads; ++head)
      sum += static_cast<float>(from[head * stride + i]);
    to[i] = T(sum);
  }
}

}  // namespace

latent_attention::latent_attention(const velo::context& context, const weights& from,
                                   const model_settings& m, const layer_layout& at, bool training)
    : type_(dtype_of(from.type())),
      hidden_(m.hidden),
      heads_(from.layout().widths.heads),
      nope_(m.qk_nope_head_dim),
      rope_(m.qk_rope_head_dim),
      value_(m.v_head_dim),
      query_low_(make_low(context, from, at.query_low, at.query_norm, m.q_lora_rank, training)),
      key_low_(make_low(context, from, at.key_low, at.key_norm, m.kv_lora_rank, training)),
      query_(context, from, at.qkv, heads_ * (nope_ + rope_),
             m.q_lora_rank > 0 ? m.q_lora_rank : m.hidden, training),
      expand_(context, from, at.expand, expanded_width(), m.kv_lora_rank, training),
      rotated_key_(context, from, at.key_low + m.kv_lora_rank * hidden_, rope_, hidden_, training) {
}

std::optional<latent_attention::low_rank> latent_attention::make_low(
    const velo::context& context, const weights& from, std::int64_t matrix, std::int64_t norm,
    std::int64_t width, bool training) const {
  if (width == 0) return std::nullopt;
  return low_rank{linear(context, from, matrix, width, hidden_, training),
                  from.weight(norm, {width}),
                  training ? from.gradient(norm, {width}) : velo::tensor_view(), width};
}

void latent_attention::refresh(const velo::stream_ref& stream) {
  for (auto* each : {&query_low_, &key_low_})
    if (*each) (*each)->matrix.refresh(stream);
  for (linear* each : {&query_, &expand_, &rotated_key_}) each->refresh(stream);
}

velo::tensor_view latent_attention::rows(const pass& now, const buffer& of,
                                         std::int64_t width) const {
  return {of.data(), type_, {now.rows(), width}};
}
velo::tensor_view latent_attention::tokens(const pass& now, const buffer& of,
                                           std::int64_t width) const {
  return {of.data(), type_, {now.batch.tokens(), width}};
}
// The rotated elements of queries or keys, the last ones of each head.
velo::tensor_view latent_attention::rotated(const pass& now, const buffer& of,
                                            std::int64_t heads) const {
  const std::int64_t width = nope_ + rope_, row = heads * width;
  return {of.data() + nope_ * (type_.bits / 8),
          type_,
          {now.batch.sequences, now.batch.length, heads, rope_},
          {now.batch.length * row, row, width, 1}};
}
velo::tensor_view latent_attention::values(const pass& now, const buffer& expanded) const {
  const std::int64_t row = expanded_width(), head = nope_ + value_;
  std::byte* const first = expanded.data() + nope_ * (type_.bits / 8);
  if (now.documents != nullptr)
    return {first, type_, {now.batch.length, heads_, value_}, {row, head, 1}};
  return {first,
          type_,
          {now.batch.sequences, now.batch.length, heads_, value_},
          {now.batch.length * row, row, head, 1}};
}
buffer latent_attention::take(const pass& now, std::int64_t elements, bool stays) const {
  return now.memory.take(elements * (type_.bits / 8),
                         stays ? VELO_PURPOSE_ACTIVATION : VELO_PURPOSE_WORKSPACE);
}

void latent_attention::make_normed(const pass& now, const low_rank& of, const velo::tensor_view& x,
                                   const low_buffers& kept) const {
  const std::int64_t room = now.room_of_rows();
  const auto make = [&](buffer& which, auto&& fill) {
    now.memory.make(which, room * of.width * (type_.bits / 8), fill);
  };
  if (!kept.low)
    make(kept.low, [&] { of.matrix.forward(now.stream, x, rows(now, kept.low, of.width)); });
  if (kept.normed) return;
  if (!kept.rstd) now.memory.make(kept.rstd, room * 4);
  make(kept.normed, [&] {
    const velo::tensor_view rstd(kept.rstd.floats(), {now.rows(), 1});
    now.parallel.hidden.norm(now.stream, {rows(now, kept.low, of.width), of.gain, rstd},
                             rows(now, kept.normed, of.width), low_epsilon);
  });
}

void latent_attention::make(const pass& now, layer_activations& kept) const {
  latent_activations& l = kept.latent;
  const std::int64_t queries = heads_ * (nope_ + rope_), element = type_.bits / 8;
  const velo::tensor_view x = rows(now, kept.attention_input, hidden_);
  if (query_low_) make_normed(now, *query_low_, x, {l.query_low, l.query_normed, l.query_rstd});
  if (!kept.projected)
    now.memory.make(kept.projected, now.room.tokens() * queries * element, [&] {
      const velo::tensor_view from = query_low_ ? rows(now, l.query_normed, query_low_->width) : x;
      project(now, query_, from, tokens(now, kept.projected, queries));
      const velo::tensor_view turned = rotated(now, kept.projected, heads_);
      const rotation by(now);
      velo::rotary_position_embedding(
          now.stream, by.fill(velo::rotary_position_embedding_args().x(turned).y(turned)));
    });
  make_normed(now, *key_low_, x, {l.key_low, l.key_normed, l.key_rstd});
  if (!l.expanded)
    now.memory.make(l.expanded, now.room.tokens() * expanded_width() * element, [&] {
      project(now, expand_, rows(now, l.key_normed, key_low_->width),
              tokens(now, l.expanded, expanded_width()));
    });
  if (!l.keys)
    now.memory.make(l.keys, now.room.tokens() * queries * element, [&] { make_keys(now, kept); });
}

// The same rotated elements go to all heads.
void latent_attention::make_keys(const pass& now, layer_activations& kept) const {
  const buffer own = take(now, now.room_of_rows() * rope_, false);
  const velo::tensor_view from = rows(now, own, rope_);
  rotated_key_.forward(now.stream, rows(now, kept.attention_input, hidden_), from);
  const all_rows all(now, from);
  const velo::tensor_view shared(all.view().data<std::byte>(), type_,
                                 {now.batch.sequences, now.batch.length, heads_, rope_},
                                 {now.batch.length * rope_, rope_, 0, 1});
  const velo::tensor_view to = rotated(now, kept.latent.keys, heads_);
  const rotation by(now);
  velo::rotary_position_embedding(now.stream,
                                  by.fill(velo::rotary_position_embedding_args().x(shared).y(to)));
  copy_unrotated(now, kept.latent.expanded.data(), kept.latent.keys.data(), true);
}

// Copies the part of keys that is not rotated, between `expanded` and `keys` or their gradients.
void latent_attention::copy_unrotated(const pass& now, std::byte* expanded, std::byte* keys,
                                      bool to_keys) const {
  const std::int64_t element = type_.bits / 8, count = now.batch.tokens() * heads_;
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* const one = expanded + i * (nope_ + value_) * element;
    std::byte* const other = keys + i * (nope_ + rope_) * element;
    std::memcpy(to_keys ? other : one, to_keys ? one : other,
                static_cast<std::size_t>(nope_ * element));
  }
}

void latent_attention::backward(const pass& now, const buffer& queries,
                                const velo::tensor_view& branch, layer_activations& kept,
                                bool deferred) const {
  rotate_back(now, rotated(now, queries, heads_));
  queries_backward(now, tokens(now, queries, heads_ * (nope_ + rope_)), branch, kept, deferred);
  latent_activations& l = kept.latent;
  copy_unrotated(now, l.expanded_gradient.data(), l.keys_gradient.data(), false);
  keys_backward(now, branch, kept, deferred);
  rotated_backward(now, branch, kept, deferred);
  l.keys_gradient = {};
}

void latent_attention::rotate_back(const pass& now, const velo::tensor_view& of) const {
  const rotation by(now);
  velo::rotary_position_embedding_backward(
      now.stream, by.fill(velo::rotary_position_embedding_backward_args().dy(of).dx(of)));
}

void latent_attention::low_backward(const pass& now, const low_rank& of, const velo::tensor_view& x,
                                    const low_buffers& kept, const velo::tensor_view& gradient,
                                    bool deferred) const {
  norm_backward(now, rows(now, kept.low, of.width), of.gain, kept.rstd, gradient, of.gain_gradient);
  if (!deferred) of.matrix.weight_gradient(now.stream, x, gradient);
}

void latent_attention::queries_backward(const pass& now, const velo::tensor_view& dqueries,
                                        const velo::tensor_view& branch, layer_activations& kept,
                                        bool deferred) const {
  latent_activations& l = kept.latent;
  const velo::tensor_view x = rows(now, kept.attention_input, hidden_);
  if (!query_low_) return project_backward(now, query_, {x, dqueries, branch}, deferred, nullptr);
  const std::int64_t width = query_low_->width;
  buffer through = take(now, now.room_of_rows() * width, deferred);
  const velo::tensor_view dlow = rows(now, through, width);
  project_backward(now, query_, {rows(now, l.query_normed, width), dqueries, dlow}, deferred,
                   &l.query_normed);
  low_backward(now, *query_low_, x, {l.query_low, l.query_normed, l.query_rstd}, dlow, deferred);
  query_low_->matrix.input_gradient(now.stream, dlow, branch);
  if (deferred) l.query_low_gradient = std::move(through);
}

void latent_attention::keys_backward(const pass& now, const velo::tensor_view& branch,
                                     layer_activations& kept, bool deferred) const {
  latent_activations& l = kept.latent;
  const std::int64_t width = key_low_->width;
  buffer through = take(now, now.room_of_rows() * width, deferred);
  const velo::tensor_view dlow = rows(now, through, width),
                          dexpanded = tokens(now, l.expanded_gradient, expanded_width());
  project_backward(now, expand_, {rows(now, l.key_normed, width), dexpanded, dlow}, deferred,
                   &l.key_normed);
  if (!deferred) l.expanded_gradient = {};
  low_backward(now, *key_low_, rows(now, kept.attention_input, hidden_),
               {l.key_low, l.key_normed, l.key_rstd}, dlow, deferred);
  key_low_->matrix.add_input_gradient(now.stream, dlow, branch);
  if (deferred) l.key_low_gradient = std::move(through);
}

// Writes the sum over this rank's heads of the rotated part, [tokens, qk_rope_head_dim].
void latent_attention::sum_rotated(const pass& now, const buffer& keys, std::byte* sum) const {
  const std::int64_t width = nope_ + rope_, count = now.batch.tokens();
  const auto add = [&](const auto* from, auto* to) {
    for (std::int64_t i = 0; i < count; ++i)
      add_heads(from + i * heads_ * width + nope_, heads_, width, rope_, to + i * rope_);
  };
  if (type_.bits == 32) return add(keys.floats(), reinterpret_cast<float*>(sum));
  add(reinterpret_cast<const velo::bfloat16*>(keys.data()), reinterpret_cast<velo::bfloat16*>(sum));
}

void latent_attention::rotated_backward(const pass& now, const velo::tensor_view& branch,
                                        layer_activations& kept, bool deferred) const {
  buffer through = take(now, now.room_of_rows() * rope_, deferred);
  const velo::tensor_view own = rows(now, through, rope_);
  const summed_rows sum(now, own);
  auto* const all = sum.view().data<std::byte>();
  sum_rotated(now, kept.latent.keys_gradient, all);
  rotate_back(now, {all, type_, {now.batch.sequences, now.batch.length, 1, rope_}});
  sum.finish();
  if (!deferred)
    rotated_key_.weight_gradient(now.stream, rows(now, kept.attention_input, hidden_), own);
  rotated_key_.add_input_gradient(now.stream, own, branch);
  if (deferred) kept.latent.rotated_gradient = std::move(through);
}

void latent_attention::weight_gradients(const pass& now, const layer_activations& kept) const {
  const latent_activations& l = kept.latent;
  const velo::tensor_view x = rows(now, kept.attention_input, hidden_),
                          dqueries = tokens(now, kept.projected_gradient, heads_ * (nope_ + rope_));
  if (query_low_) {
    const std::int64_t width = query_low_->width;
    project_weight_gradient(now, query_, rows(now, l.query_normed, width), dqueries);
    query_low_->matrix.weight_gradient(now.stream, x, rows(now, l.query_low_gradient, width));
  } else {
    project_weight_gradient(now, query_, x, dqueries);
  }
  const std::int64_t width = key_low_->width;
  project_weight_gradient(now, expand_, rows(now, l.key_normed, width),
                          tokens(now, l.expanded_gradient, expanded_width()));
  key_low_->matrix.weight_gradient(now.stream, x, rows(now, l.key_low_gradient, width));
  rotated_key_.weight_gradient(now.stream, x, rows(now, l.rotated_gradient, rope_));
}

}  // namespace decoder
