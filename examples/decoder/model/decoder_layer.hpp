// One layer of the decoder, forward and backward, each a straight sequence of velo's operators:
//
//   middle = input  + attention(rotary(qkv(norm(input))))
//   output = middle + down(swiglu(gate_up(norm(middle))))
//
// The layer holds weights, or a tensor rank's part of them; activations belong to the micro-batch.
// Between the two matrices of a branch a row has the width of that part. Each operator of the
// forward pass runs where its output is missing: so a layer whose activations were partly released
// recomputes those, and nothing else, in its backward pass. The sum over tensor ranks that ends a
// layer is not needed there, and is not repeated. The one behind attention leads to `middle`, and
// is not repeated where `middle` was saved (recompute_communication_level 2). With experts
// (experts/expert_block.hpp) these stand in place of the feed-forward block, or beside a shared
// expert, whose output is added to theirs.
//
// Latent attention (attention/latent_attention.hpp) has other projections to queries, keys and
// values, and its values have heads of another width than its keys.
//
// With kv_share some layers project queries alone and attend to the keys and values of the layer
// before, their owner. They take these rotated: all layers rotate the same positions by the same
// angles. Context ranks also take what the owner's attention has kept of other ranks, in both
// passes, and exchange the rest. In the backward pass such a layer leaves the gradient of keys and
// values to the owner, whose own is added to it before both go back through rotation and
// projection.
#pragma once

#include <optional>

#include "examples/decoder/model/activations.hpp"
#include "examples/decoder/model/attention/latent_attention.hpp"
#include "examples/decoder/model/attention/rotary_table.hpp"
#include "examples/decoder/model/experts/expert_block.hpp"
#include "examples/decoder/model/gated_block.hpp"
#include "examples/decoder/model/linear.hpp"
#include "examples/decoder/model/recompute.hpp"

namespace decoder {

class split_tensors;

class decoder_layer {
 public:
  // keys: which of other ranks' keys attention keeps for the gradient. experts: must outlive the
  // layer. number: the layer's, in the whole model.
  decoder_layer(const velo::context& context, const weights& from, const model_settings& model,
                const layer_layout& at, bool training, layer_keys keys,
                const expert_parallel& experts, std::size_t number);

  void refresh(const velo::stream_ref& stream);

  // Makes those buffers of an empty `kept` regions that the backward pass is to recompute.
  static void recompute(layer_activations& kept, const layer_recompute& what);

  // Computes `output` from `input` [rows, hidden] and fills `kept`.
  void forward(const pass& now, const buffer& input, layer_activations& kept, buffer& output) const;

  // Computes the missing activations that another layer needs to attend to this one's keys: the
  // rotated projections, and other ranks' keys where attention has kept them.
  void make_shared(const pass& now, const buffer& input, layer_activations& kept) const;
  bool has_shared(const pass& now, const layer_activations& kept) const;

  // Both passes in parts, as plans of sublayers order them (overlap/decoder_layer_parts.cpp). A
  // part that is a message is called with a pass whose stream may queue it. `begin_backward` comes
  // before a layer's first part of the backward pass, `finish` after the last of the forward pass.
  bool has_experts() const { return experts_.has_value(); }
  void start(velo_sublayer_kind part, const pass& now, const buffer& input,
             layer_activations& kept) const;
  void finish(const pass& now, const buffer& input, layer_activations& kept, buffer& output) const;
  void begin_backward(const pass& now, const buffer& input, layer_activations& kept) const {
    make_feed_forward(now, input, kept);
  }
  void start_backward(velo_sublayer_kind part, const pass& now, buffer& gradient,
                      const buffer& input, layer_activations& kept) const;

  // Recomputes the missing buffers of `kept`.
  void restore(const pass& now, const buffer& input, layer_activations& kept) const {
    make_feed_forward(now, input, kept);
    make_attention(now, input, kept);
  }

  // Turns `gradient` [rows, hidden] from the output's into the input's, and adds to the weights'
  // gradients. `input` is that of `forward`; `kept` is empty afterwards. With `deferred` the
  // weights' gradients are left to weight_gradients, which needs some of `kept` and then empties
  // it. A borrowed gradient is not written to.
  void backward(const pass& now, buffer& gradient, const buffer& input, layer_activations& kept,
                bool deferred = false) const;
  void weight_gradients(const pass& now, layer_activations& kept) const;
  // Sums the finished gradients of keys' and values' projections over the ranks that have them.
  void sum_key_gradients(const pass& now) const;

 private:
  // The tensors that both passes of attention read, `others`, which some layers keep, and `given`,
  // which the owner of the keys has kept.
  struct attention_tensors {
    velo::tensor_view query, key, value, out, max, sum, others, given = {};
  };
  attention_tensors attention_of(const pass& now, const layer_activations& kept) const;
  // Adds all but `others` and `given`, and the scale, to the arguments of an operator; `out` and
  // the statistics are results of the forward pass.
  template <class Arguments>
  Arguments filled(Arguments with, const attention_tensors& of) const {
    with.query(of.query).key(of.key).value(of.value).attention_out(of.out);
    with.softmax_max(of.max).softmax_sum(of.sum).scale(model_.attention_scale());
    return with;
  }
  // The same with those of other ranks' rows, where there are any.
  template <class Arguments>
  Arguments filled_together(const pass& now, Arguments with, const layer_activations& kept,
                            const attention_tensors& of) const {
    with.group(now.parallel.context.group()).plan(now.share().of(keys_).plan);
    if (kept.kept_keys) with.kept(of.others);
    if (takes_keys(now)) with.given(of.given);
    return filled(std::move(with), of);
  }
  // Whether attention reads other ranks' keys in what their owner's has kept.
  bool takes_keys(const pass& now) const { return kept_by_owner(now) > 0; }
  std::int64_t kept_by_owner(const pass& now) const;
  void make_projected(const pass& now, const buffer& input, layer_activations& kept) const;
  void make_attention(const pass& now, const buffer& input, layer_activations& kept) const;
  void attend(const pass& now, layer_activations& kept) const;
  void attend_alone(const pass& now, const layer_activations& kept) const;
  void attend_together(const pass& now, const layer_activations& kept) const;
  void project_rotated(const pass& now, const buffer& input, const buffer& to) const;

  // These serve the rows of a split (decoder_layer_split.cpp).
  void project_split(const pass& now, layer_activations& kept) const;
  void share_keys(const pass& now, const layer_activations& kept, const buffer& qkv) const;
  std::int64_t sums_of_split(const pass& now) const;
  template <class F>
  void each_call(const pass& now, const split_tensors& at, F&& f) const;
  void attend_split(const pass& now, const layer_activations& kept) const;
  buffer attend_split_backward(const pass& now, const layer_activations& kept,
                               const velo::tensor_view& attended) const;
  void exchange_backward(const pass& now, const split_tensors& at, const layer_activations& kept,
                         std::byte* dy, const buffer& projected) const;
  // Attention's outputs and their gradient, and where that of queries goes: `row` elements from one
  // to the next.
  struct split_rows {
    std::byte *out, *dy, *dquery;
    std::int64_t row;
  };
  void add_split_gradients(const pass& now, const split_tensors& at, const layer_activations& kept,
                           const split_rows& of) const;

  void make_middle(const pass& now, const buffer& input, layer_activations& kept) const;
  void make_feed_forward(const pass& now, const buffer& input, layer_activations& kept) const;
  void add_output(const pass& now, const layer_activations& kept, const velo::tensor_view& branch,
                  buffer& output) const;
  void attention_to_input(const pass& now, buffer& gradient, const velo::tensor_view& branch,
                          const buffer& input, layer_activations& kept, bool deferred) const;
  buffer attend_backward(const pass& now, layer_activations& kept,
                         const velo::tensor_view& attended) const;
  void add_shared(const pass& now, const buffer& shared, const buffer& to) const;
  void projection_backward(const pass& now, const buffer& through, const velo::tensor_view& branch,
                           layer_activations& kept, bool deferred) const;
  void attention_backward(const pass& now, const velo::tensor_view& gradient,
                          const velo::tensor_view& branch, const buffer& input,
                          layer_activations& kept, bool deferred) const;
  void feed_forward_backward(const pass& now, const velo::tensor_view& gradient,
                             const velo::tensor_view& branch, layer_activations& kept,
                             bool deferred) const;
  void shared_backward(const pass& now, const velo::tensor_view& gradient,
                       layer_activations& kept) const;
  gated_block::buffers gated_of(layer_activations& kept) const;
  void add_to(const pass& now, const velo::tensor_view& sum, const buffer& other) const;
  void add_branch(const pass& now, buffer& gradient, const velo::tensor_view& branch,
                  buffer* former) const;

  void norm(const pass& now, const buffer& x, const velo::tensor_view& gain, buffer& y,
            buffer& rstd) const;

  std::int64_t stream_bytes(const pass& now) const;
  std::int64_t bytes(const pass& now, std::int64_t width) const;
  buffer workspace(const pass& now, std::int64_t bytes) const;
  velo::tensor_view stream(const pass& now, const buffer& of) const;
  velo::tensor_view tokens(const pass& now, const buffer& of, std::int64_t width) const;
  velo::tensor_view column(const pass& now, const buffer& of) const;
  velo::tensor_view heads(const pass& now, const buffer& of, std::int64_t row, std::int64_t first,
                          std::int64_t count) const;
  velo::tensor_view attention_heads(const pass& now, const buffer& of, std::int64_t row,
                                    std::int64_t first, std::int64_t count) const;
  velo::tensor_view rotated_heads(const pass& now, const buffer& projected) const;
  velo::tensor_view per_head(const pass& now, const buffer& of) const;
  velo::tensor_view sums(const pass& now, const buffer& of) const;
  velo::tensor_view others(const pass& now, const buffer& kept_keys, std::int64_t count) const;

  model_settings model_;
  part_widths part_;
  velo_dtype type_;
  layer_keys keys_;
  bool owns_keys_;
  std::int64_t projected_;  // width of the projection: of queries, keys and values, or of queries
  std::optional<linear> qkv_;
  std::optional<latent_attention> latent_;  // in place of it
  linear out_;
  std::optional<expert_block> experts_;
  std::optional<gated_block> gated_;  // without experts, or the shared one
  velo::tensor_view attention_gain_, feed_forward_gain_;
  velo::tensor_view attention_gain_gradient_, feed_forward_gain_gradient_, keys_gradient_;
};

}  // namespace decoder
