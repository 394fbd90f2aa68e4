// The language model: embedding, decoder layers, norm, head and loss, forward and backward; or a
// stage of it: consecutive layers, with the embedding in the first stage and norm, head and loss in
// the last.
//
// Activations belong to the micro-batch (activations.hpp). The logits are computed in the model's
// dtype, and the backward pass turns them into their gradient in place, so they exist once.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "examples/decoder/model/decoder_layer.hpp"

namespace decoder {

// Layers [first, last) of a model, of a stage that has the embedding (`begins`) and the head
// (`ends`), or not. There may be none.
struct stage_range {
  std::size_t first, last;
  bool begins, ends;
  std::size_t count() const { return last - first; }
};

// The activations that a forward pass saves: all that the backward pass reads, except those that it
// recomputes; the input alone, for model::make_again; or nothing, when no backward pass follows.
enum class kept { all, input, nothing };

// A stage's pass in parts, which the plan of sublayers in overlap/layer_overlap.hpp orders.
// Messages go on a stream of their own.
struct forward_parts {
  pass now, messages;
  activations& of;
  kept what;
};
struct backward_parts {
  pass now, messages;
  activations& of;
  buffer gradient;
};

class model {
 public:
  // A whole model for sequences of one length. `from` and the weights must outlive the model.
  model(run_memory& from, const velo::context& context, const weights& weights,
        const model_settings& settings, std::int64_t length, bool training);
  // A stage of the model, whose layers `parallel` shares with other ranks.
  model(run_memory& from, const velo::context& context, const weights& weights,
        const model_settings& settings, std::shared_ptr<const model_parallel> parallel,
        bool training, stage_range part);

  // Packs the weights for the products; to be called whenever they have changed. While ranks gather
  // the weights (`gathered` outlives that), the next forward pass waits for those of a layer, and
  // packs them, where it begins the layer; `complete` waits for all that are left.
  void refresh(const velo::stream_ref& stream, const data_parallel* gathered = nullptr);
  void complete(const velo::stream_ref& stream);

  // Sets what the backward pass recomputes, by layer; at first nothing. Not to be called between
  // the passes of a micro-batch.
  void recompute(std::vector<layer_recompute> what);

  // Returns the logits of every position of the first `sequences`: [sequences x length, vocab]; of
  // this rank's rows and symbols where ranks share the layers.
  // `alone`: no backward pass follows, and nothing is saved.
  velo::tensor_view forward(const velo::stream_ref& stream, activations& of, std::int64_t sequences,
                            bool alone = false);

  // The forward pass of a stage. `input` is the output of the stage before, borrowed; the first
  // stage embeds its symbols instead. Returns the stage's output, or nothing from the last stage,
  // which has a loss.
  buffer forward_stage(const velo::stream_ref& stream, activations& of, std::int64_t sequences,
                       buffer input, kept what = kept::all);
  // Recomputes all activations of a stage that is not the last, after a forward pass that saved its
  // input alone.
  void make_again(const velo::stream_ref& stream, activations& of) const;
  // Frees the last layer's activations once their copies are out, if they are swapped.
  void settle_last_layer(activations& of) const;

  // Returns the sum of the losses of all targets that count, or their mean (activations::counted),
  // in nats. Follows forward.
  // Of ranks that share the layers each returns its part of it, and all targets count in a mean.
  double loss(const velo::stream_ref& stream, activations& of, velo::reduction how);

  // Adds `scale` times the gradient of a mean loss to the weights' gradients. Follows loss.
  void backward(const velo::stream_ref& stream, activations& of, double scale);

  // The backward pass of a stage: takes the gradient of its output, which it does not write to
  // (nothing in the last stage), and returns the gradient of its input (nothing from the first).
  // `deferred` leaves the weights' gradients to weight_gradients; the given gradient must live
  // until then.
  buffer backward_stage(const velo::stream_ref& stream, activations& of, double scale,
                        buffer gradient, bool deferred);
  void weight_gradients(const velo::stream_ref& stream, activations& of) const;

  // The same passes as parts: what comes before the layers, a part of a layer, and the rest.
  forward_parts begin_forward(const velo::stream_ref& stream, activations& of,
                              std::int64_t sequences, buffer input, kept what = kept::all);
  void start(const forward_parts& parts, const velo_sublayer_step& step);
  buffer end_forward(const forward_parts& parts);
  backward_parts begin_backward(const velo::stream_ref& stream, activations& of, double scale,
                                buffer gradient);
  void start(backward_parts& parts, const velo_sublayer_step& step) const;
  buffer end_backward(backward_parts& parts) const;
  // By layer: 1 where it has no messages.
  std::vector<std::int32_t> dense_layers() const;
  bool has_shared_expert() const { return settings_.shared_experts > 0; }

  std::int64_t width() const { return part_.hidden; }  // of this rank's rows between stages
  bool has_layers() const { return depth_ > 0; }
  bool begins() const { return begins_; }
  bool ends() const { return ends_; }

  // The lifetimes of the buffers of a forward and a backward pass of `of.largest()`, by the same
  // code on tensors without rows; or, if it `scores`, of a forward pass alone.
  std::vector<lifetime> dry_run(const velo::stream_ref& stream, activations& of,
                                bool scores = false);

  // Measures the memory that each kind of recompute saves in a layer, and its time, on
  // micro-batches of `of.largest()`.
  std::vector<recompute_cost> measure(const velo::stream_ref& stream, activations& of,
                                      bool keeps_middle);

  // Runs a forward and a backward pass through the first layer and what the ends of the model have,
  // so that operators have allocated all their scratch. Ranks that share the layers call it
  // together. Adds to the weights' gradients.
  void warm_up(const velo::stream_ref& stream, activations& of);

 private:
  void zero_keys(const pass& now, activations& of);
  void require_embedding();
  void require_layers(const velo::stream_ref& stream, std::size_t count);
  void require_head(const velo::stream_ref& stream);
  pass begin(const velo::stream_ref& stream, const activations& of) const;
  velo::tensor_view stream(const pass& now, const buffer& of) const;
  velo::tensor_view logits(const pass& now, const activations& of) const;
  velo::tensor_view floats(const buffer& of, std::int64_t count) const;
  buffer make(std::int64_t elements) const;
  buffer make_stream(const pass& now) const;
  buffer make_floats(std::int64_t count) const;
  void embed(const pass& now, activations& of) const;
  void embed_backward(const pass& now, activations& of, const buffer& gradient) const;
  void head_forward(const pass& now, activations& of, bool alone) const;
  double counted_by_ranks(const activations& of) const;
  double shared_loss(const pass& now, activations& of, velo::reduction how) const;
  void loss_backward(const pass& now, const activations& of, double scale);
  void shared_loss_backward(const pass& now, const activations& of, double scale) const;
  bool is_shared() const;
  void head_gradient(const pass& now, activations& of) const;
  buffer head_backward(const pass& now, activations& of, double scale, bool deferred);
  bool shares_keys(std::size_t layer) const;
  bool inside_group(std::size_t layer) const;
  void free_layer(activations& of, std::size_t layer, kept what) const;
  void layer_forward(const pass& now, activations& of, std::size_t layer, kept what) const;
  void begin_layer(activations& of, std::size_t layer, kept what) const;
  void end_layer(const pass& now, activations& of, std::size_t layer, kept what) const;
  void finish_layer_parts(const forward_parts& parts, std::size_t layer) const;
  void begin_layers(const pass& now, activations& of, buffer input);
  buffer end_layers(const pass& now, activations& of, kept what);
  buffer end_gradients(const pass& now, activations& of, buffer gradient, bool deferred) const;
  buffer handed_on(const pass& now, buffer made, bool is_own) const;
  void finish_layer(const pass& now, const activations& of, std::size_t layer) const;
  void bring_back(activations& of, std::size_t layer) const;
  void restore_input(const pass& now, activations& of, std::size_t layer) const;
  void restore_keys(const pass& now, activations& of, std::size_t layer) const;
  void layer_backward(const pass& now, activations& of, std::size_t layer, buffer& gradient,
                      bool deferred) const;

  run_memory& memory_;
  model_settings settings_;
  part_widths part_;
  std::shared_ptr<const model_parallel> parallel_;
  velo_dtype type_;
  std::size_t first_;  // the first layer's number in the whole model
  bool begins_, ends_;
  std::vector<decoder_layer> layers_;
  std::vector<layer_recompute> recompute_;
  std::size_t depth_;           // layers that passes go through
  std::optional<linear> head_;  // of the last stage
  velo::tensor_view embedding_, embedding_gradient_, gain_, gain_gradient_;
  rotary_table angles_;
  float loss_ = 0, loss_gradient_ = 0;
  const data_parallel* gathered_ = nullptr;  // where weights may still be on their way
  std::size_t packed_ = 0;                   // layers whose weights are packed, from the first
  bool head_packed_ = false;
};

}  // namespace decoder
