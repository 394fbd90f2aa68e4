// The projections of multi-head latent attention (DeepSeek-V3), in place of those of grouped
// queries:
//
//   queries  = q_b(norm(q_a(x))), or q(x) without a rank of queries
//   expanded = kv_b(norm(kv_a(x))), a head's part of keys and its values
//   keys     = that part of a head, and rotary(k_rope(x)), the same of all heads
//
// The last qk_rope_head_dim elements of a query are rotated, too; pairs are neighbors. kv_a and
// k_rope lie end to end as one weight of files. Tensor ranks share q_b and kv_b by heads, and each
// has the others whole: it multiplies its own rows of the residual stream, so that with sequence
// parallelism a rank has a part of their gradients, as of a norm's. The gradient of k_rope's output
// is a sum over heads, and over tensor ranks. Cost: five products, all but the two by heads narrow,
// and a copy of the keys.
#pragma once

#include <optional>

#include "examples/decoder/model/activations.hpp"
#include "examples/decoder/model/linear.hpp"

namespace decoder {

class latent_attention {
 public:
  latent_attention(const velo::context& context, const weights& from, const model_settings& model,
                   const layer_layout& at, bool training);

  void refresh(const velo::stream_ref& stream);

  // Computes the missing activations from kept.attention_input: queries in kept.projected, keys and
  // values in kept.latent.
  void make(const pass& now, layer_activations& kept) const;

  // A view of `expanded` or of its gradient, the values of all heads: [sequences, length, heads,
  // v_head_dim], or of documents [length, ..].
  velo::tensor_view values(const pass& now, const buffer& expanded) const;
  std::int64_t expanded_width() const { return heads_ * (nope_ + value_); }

  // Writes the gradient of the input, rows of the stream, to `branch`, from those of queries, keys
  // and values (kept.latent), and adds to the weights' gradients; with `deferred` these are left to
  // weight_gradients. The queries' gradient is then that before their rotation.
  void backward(const pass& now, const buffer& queries, const velo::tensor_view& branch,
                layer_activations& kept, bool deferred) const;
  void weight_gradients(const pass& now, const layer_activations& kept) const;

 private:
  // A matrix of low rank and the norm behind it.
  struct low_rank {
    linear matrix;
    velo::tensor_view gain, gain_gradient;
    std::int64_t width;
  };
  struct low_buffers {
    buffer &low, &normed, &rstd;
  };
  std::optional<low_rank> make_low(const velo::context& context, const weights& from,
                                   std::int64_t matrix, std::int64_t norm, std::int64_t width,
                                   bool training) const;
  void make_normed(const pass& now, const low_rank& of, const velo::tensor_view& x,
                   const low_buffers& kept) const;
  // Turns the gradient of the normed rows into that of the rows before the norm, in place, and adds
  // to the norm's and the matrix's gradients.
  void low_backward(const pass& now, const low_rank& of, const velo::tensor_view& x,
                    const low_buffers& kept, const velo::tensor_view& gradient,
                    bool deferred) const;
  void make_keys(const pass& now, layer_activations& kept) const;
  void copy_unrotated(const pass& now, std::byte* expanded, std::byte* keys, bool to_keys) const;
  void sum_rotated(const pass& now, const buffer& keys, std::byte* sum) const;
  void queries_backward(const pass& now, const velo::tensor_view& dqueries,
                        const velo::tensor_view& branch, layer_activations& kept,
                        bool deferred) const;
  void keys_backward(const pass& now, const velo::tensor_view& branch, layer_activations& kept,
                     bool deferred) const;
  void rotated_backward(const pass& now, const velo::tensor_view& branch, layer_activations& kept,
                        bool deferred) const;
  void rotate_back(const pass& now, const velo::tensor_view& of) const;

  velo::tensor_view rows(const pass& now, const buffer& of, std::int64_t width) const;
  velo::tensor_view tokens(const pass& now, const buffer& of, std::int64_t width) const;
  velo::tensor_view rotated(const pass& now, const buffer& of, std::int64_t heads) const;
  buffer take(const pass& now, std::int64_t elements, bool stays) const;

  velo_dtype type_;
  std::int64_t hidden_, heads_, nope_, rope_, value_;
  std::optional<low_rank> query_low_, key_low_;
  linear query_, expand_, rotated_key_;
};

}  // namespace decoder
