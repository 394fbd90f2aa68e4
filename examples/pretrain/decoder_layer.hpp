// One layer of the decoder, forward and backward, each a straight sequence of velo's operators:
//
//   middle = input  + attention(rotary(qkv(norm(input))))
//   output = middle + down(swiglu(gate_up(norm(middle))))
//
// What the backward pass needs stays in the layer's own buffers; what it makes lives in a workspace
// that all layers share. The buffers are planned for the largest batch, and any smaller one may run
// in them.
#pragma once

#include "linear.hpp"
#include "rotary_table.hpp"

namespace pretrain {

// How many sequences a call works on, and how long each is.
struct batch_shape {
  std::int64_t sequences, length;
  std::int64_t tokens() const { return sequences * length; }
};

// Buffers that no layer needs longer than one pass through it.
struct workspace {
  std::byte* branch = nullptr;    // [tokens, hidden]: added to, or back from, the residual stream
  std::byte* qkv = nullptr;       // [tokens, hidden + 2 kv]: gradients of queries, keys and values
  std::byte* attended = nullptr;  // [tokens, hidden]
  std::byte* gated = nullptr;     // [tokens, inner]

  void plan(arena& from, const model_settings& model, batch_shape largest, bool training);
};

class decoder_layer {
 public:
  decoder_layer(const velo::context& context, const weights& from, const model_settings& model,
                const layer_layout& at, bool training);

  void plan(arena& from, batch_shape largest);
  void refresh(const velo::stream_ref& stream);

  // Reads `input` [tokens, hidden], which must stay as it is until `backward`, and gives the
  // layer's output.
  std::byte* forward(const velo::stream_ref& stream, batch_shape batch, std::byte* input,
                     const rotary_table& angles, const workspace& space);

  // Turns `gradient` [tokens, hidden] from that of the output into that of the input, and adds to
  // the weights' gradients.
  void backward(const velo::stream_ref& stream, batch_shape batch, std::byte* gradient,
                const rotary_table& angles, const workspace& space);

 private:
  void attention_forward(const velo::stream_ref& stream, batch_shape batch,
                         const rotary_table& angles, const workspace& space);
  void attention_backward(const velo::stream_ref& stream, batch_shape batch,
                          const velo::tensor_view& gradient, const rotary_table& angles,
                          const workspace& space);
  void feed_forward_backward(const velo::stream_ref& stream, batch_shape batch,
                             const velo::tensor_view& gradient, const workspace& space);

  velo::tensor_view rows(std::byte* data, batch_shape batch, std::int64_t width) const;
  velo::tensor_view heads(std::byte* qkv, batch_shape batch, std::int64_t first,
                          std::int64_t count) const;

  model_settings model_;
  velo_dtype type_;
  linear qkv_, out_, gate_up_, down_;
  velo::tensor_view attention_gain_, feed_forward_gain_;
  velo::tensor_view attention_gain_gradient_, feed_forward_gain_gradient_;

  // Kept from forward to backward. [tokens, ..] in the model's dtype:
  std::byte* input_ = nullptr;               // hidden; the caller's
  std::byte* attention_input_ = nullptr;     // hidden; normed
  std::byte* projected_ = nullptr;           // hidden + 2 kv; rotated queries and keys, and values
  std::byte* attended_ = nullptr;            // hidden
  std::byte* middle_ = nullptr;              // hidden
  std::byte* feed_forward_input_ = nullptr;  // hidden; normed
  std::byte* gates_ = nullptr;   // 2 inner; the backward pass overwrites it with its gradient
  std::byte* gated_ = nullptr;   // inner
  std::byte* output_ = nullptr;  // hidden
  // f32:
  float *attention_rstd_ = nullptr, *feed_forward_rstd_ = nullptr;  // [tokens]
  float *softmax_max_ = nullptr, *softmax_sum_ = nullptr;           // [sequences, heads, length]
};

}  // namespace pretrain
