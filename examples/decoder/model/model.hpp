// The language model: embedding, decoder layers, norm, head and loss, forward and backward; or a
// stage of it, layers one behind the other with what lies before the first and behind the last.
//
// What a pass makes for the next one is the micro-batch's (activations.hpp). The logits are
// computed in the model's dtype, and the backward pass turns them into their gradient in place, so
// they exist once.
#pragma once

#include <optional>
#include <vector>

#include "examples/decoder/model/decoder_layer.hpp"

namespace decoder {

// Layers [first, last) of a model.
struct stage_range {
  std::size_t first, last;
};

// What a forward pass leaves for what follows: all that the backward pass reads but what is made
// again there; the input alone, for model::make_again; or nothing, of a pass that is alone.
enum class kept { all, input, nothing };

class model {
 public:
  // Of sequences of one length. `from` and the weights must outlive the model.
  model(run_memory& from, const velo::context& context, const weights& weights,
        const model_settings& settings, std::int64_t length, bool training);
  // A stage of it.
  model(run_memory& from, const velo::context& context, const weights& weights,
        const model_settings& settings, std::int64_t length, bool training, stage_range part);

  // To be called whenever the weights have changed: lays them out anew for the products. gathered:
  // waits for the parts of a model that ranks gather, as they come; may be nullptr.
  void refresh(const velo::stream_ref& stream, const exchange* gathered = nullptr);

  // What the backward pass makes again, by layer; at first nothing. Not between the passes of a
  // micro-batch.
  void recompute(std::vector<layer_recompute> what) { recompute_ = std::move(what); }

  // Logits of every position of the first `sequences`: [sequences x length, vocab]. Of a forward
  // pass that is `alone` no backward pass follows, and nothing is kept for it.
  velo::tensor_view forward(const velo::stream_ref& stream, activations& of, std::int64_t sequences,
                            bool alone = false);

  // A stage's: from what the stage before gives, borrowed, in the place of the embedding; its
  // output, or nothing in the last stage, of which there is a loss.
  buffer forward_stage(const velo::stream_ref& stream, activations& of, std::int64_t sequences,
                       buffer input, kept what = kept::all);
  // After a forward pass that kept its input, of a stage that is not the last: as if it had kept
  // all.
  void make_again(const velo::stream_ref& stream, activations& of) const;

  // After forward: the sum, or the mean, of the losses of all targets that count, in nats.
  double loss(const velo::stream_ref& stream, activations& of, velo::reduction how);

  // After a mean loss: adds `scale` times its gradient to the weights' gradients.
  void backward(const velo::stream_ref& stream, activations& of, double scale);

  // A stage's: from the gradient of its output, which is not written to (nothing in the last), that
  // of its input, or nothing in the first. With `later` the products of the weights' gradients are
  // left to weight_gradients; what was given must stay until then.
  buffer backward_stage(const velo::stream_ref& stream, activations& of, double scale,
                        buffer gradient, bool later);
  void weight_gradients(const velo::stream_ref& stream, activations& of) const;

  bool begins() const { return begins_; }
  bool ends() const { return ends_; }

  // The lifetimes of the buffers of a forward and a backward pass of `of.largest()`, by the same
  // code on no rows.
  std::vector<lifetime> rehearse(const velo::stream_ref& stream, activations& of);

  // What each kind of recompute saves in a layer and takes, on micro-batches of `of.largest()`.
  std::vector<recompute_cost> measure(const velo::stream_ref& stream, activations& of);

  // A forward and a backward pass through the first layer and the head alone, so that operators
  // have taken all the scratch they will. Adds to the weights' gradients.
  void warm_up(const velo::stream_ref& stream, activations& of);

 private:
  pass begin(const velo::stream_ref& stream, const activations& of) const;
  velo::tensor_view rows(const pass& now, const buffer& of, std::int64_t width) const;
  buffer make(const pass& now, std::int64_t width) const;
  buffer make_floats(const pass& now) const;
  void embed(const pass& now, activations& of) const;
  void embed_backward(const pass& now, activations& of, const buffer& gradient) const;
  void head_forward(const pass& now, activations& of, bool alone) const;
  buffer head_backward(const pass& now, activations& of, double scale, bool later);
  bool inside_group(std::size_t layer) const;
  void layer_forward(const pass& now, activations& of, std::size_t layer, kept what) const;
  void bring_back(activations& of, std::size_t layer) const;
  void layer_backward(const pass& now, activations& of, std::size_t layer, buffer& gradient,
                      bool later) const;

  run_memory& memory_;
  model_settings settings_;
  velo_dtype type_;
  std::size_t first_;  // of the whole model's layers
  bool begins_, ends_;
  std::vector<decoder_layer> layers_;
  std::vector<layer_recompute> recompute_;
  std::size_t depth_;           // layers that passes go through
  std::optional<linear> head_;  // of the last stage
  velo::tensor_view embedding_, embedding_gradient_, gain_, gain_gradient_;
  rotary_table angles_;
  float loss_ = 0, loss_gradient_ = 0;
};

}  // namespace decoder
