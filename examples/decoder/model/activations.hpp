// The activations that a micro-batch saves in its forward pass for its backward pass: those of its
// layers, of the embedding and of the head, and its symbols.
//
// A buffer lives from the operator that writes it to the last one that reads it. Several
// micro-batches may be between their passes at a time, each with an object of its own. An object
// serves one micro-batch after another and takes nothing from the heap for that.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "examples/decoder/data/sequence_split.hpp"
#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/model/attention/latent_activations.hpp"
#include "examples/decoder/model/attention/rotary_table.hpp"
#include "examples/decoder/model/experts/expert_activations.hpp"
#include "examples/decoder/model/layer_modules.hpp"
#include "examples/decoder/parallel/model_parallel.hpp"

namespace decoder {

class data_parallel;
class expert_loads;
class step_choices;
class swapper;

// The number of sequences of a call, and the rows of each that this rank has between matrices; and
// those that all of its tensor ranks have there, which are more in two dimensions.
struct batch_shape {
  std::int64_t sequences, length;
  std::int64_t all_length = length;
  std::int64_t tokens() const { return sequences * length; }
  std::int64_t all_tokens() const { return sequences * all_length; }
};

// The documents of a micro-batch, whose windows are then one sequence: attention and positions
// begin anew in each.
struct packed_documents {
  explicit packed_documents(buffer of_rows)
      : share{held_rows(0), {}, {}}, runs{}, positions(std::move(of_rows)) {}

  // One document of so many rows, all of this rank.
  void fill(std::int64_t rows) {
    ends = {rows};
    share = {held_rows(rows), {}, {}};
    runs = {};
  }
  // A split's rows of windows that are a document each.
  void fill(const sequence_split& of, std::int64_t windows) {
    ends.clear();
    for (std::int64_t i = 1; i <= windows; ++i) ends.push_back(i * of.sequence());
    fill_split(of, windows);
  }
  // A split's rows of windows with the documents in `ends`.
  void fill_split(const sequence_split& of, std::int64_t windows) {
    share = {rows_in_windows(of.rows, windows), {}, {}};
    for (const held_rows& each : of.along_y)
      share.along_y.push_back(rows_in_windows(each, windows));
    runs.clear();
    for (const row_run& each : of.runs) runs.push_back(document_runs_of(each, of.sequence(), ends));
  }

  std::vector<std::int64_t> ends;   // in the micro-batch
  sequence_share share;             // this rank's rows of it, or those of a split
  std::vector<document_runs> runs;  // of a split, by run of its queries
  buffer positions;                 // int32 [rows], in the documents
};

// The state that all calls of a pass share. Buffers are allocated for `room`, which is the batch;
// in a dry run the batch is empty and `room` is not.
struct pass {
  velo::stream_ref stream;
  run_memory& memory;
  const rotary_table& angles;
  const model_parallel& parallel;
  batch_shape batch, room;
  const packed_documents* documents;     // nullptr: each sequence is one
  const sequence_split* split;           // nullptr: whole sequences
  const std::int32_t* inputs = nullptr;  // symbols of all tokens
  step_choices* choices = nullptr;       // nullptr: neither recorded nor replayed
  std::int64_t first_token = 0;          // of this rank's windows, in the step
  bool limits = false;                   // experts drop choices beyond their capacity
  expert_loads* loads = nullptr;         // nullptr: choices are not counted
  double scale = 1;                      // of the micro-batch's gradient, in a backward pass

  const sequence_share& share() const {
    return documents ? documents->share : parallel.context.of_window();
  }
  // The rows of each rank along y; empty: there is one.
  const std::vector<held_rows>& along_y() const {
    return documents == nullptr && split != nullptr ? split->along_y : share().along_y;
  }

  // The rows of the residual stream that this rank has.
  std::int64_t rows() const { return parallel.tensor.rows(batch.all_tokens()); }
  std::int64_t room_of_rows() const { return parallel.tensor.rows(room.all_tokens()); }
};

// The rotated keys and values of a micro-batch in a layer, which the splits of its sequences share,
// and the float32 sums of their gradients: [sequences, rows, 2 kv_heads * head_dim], rows of whole
// sequences, of the heads that this rank has in attention. They exist from the first split's
// forward pass, and from the last split's backward pass, to the first split's backward pass.
// Neither is recomputed.
struct sequence_keys {
  buffer keys, gradients;
  std::int64_t rows = 0;  // of each sequence, whose keys and values are there
};

// A layer's activations; an empty one can be recomputed from the layer's input. In the model's
// dtype, [rows, hidden] of the residual stream or [tokens, ..] of this rank's part of the matrices
// (hidden: this rank's part, too):
struct layer_activations {
  buffer attention_input;     // [rows, hidden]; normed
  buffer projected;           // [tokens, qkv]; rotated queries and keys, and values
  buffer attended;            // [tokens, heads * head_dim]; latent: heads * v_head_dim
  buffer kept_keys;           // keys and values of other ranks, with context parallelism
  buffer middle;              // [rows, hidden]
  buffer feed_forward_input;  // [rows, hidden]; normed
  buffer gates;  // [tokens, 2 inner]; the backward pass overwrites it with its gradient
  buffer gated;  // [tokens, inner]
  latent_activations latent;  // of latent attention; `projected` then has queries alone
  expert_activations expert;  // of a layer with experts, whose rows the two above then have
  // Output gradients for weight gradients that are deferred; `gates` holds a fourth:
  buffer output_gradient, middle_gradient;  // [rows, hidden]
  buffer projected_gradient;                // [tokens, qkv]
  // The keys and values of all splits, where sequences are split; `projected` then has the queries
  // of this rank in attention alone, [tokens, heads * head_dim] or those of other ranks, too.
  sequence_keys* of_sequence = nullptr;
  // With kv_share: the layer before, whose keys and values this one attends to; nullptr if it has
  // its own. A layer that has an owner keeps queries alone in `projected`.
  layer_activations* owner = nullptr;
  // [tokens, qkv]; the gradient of this layer's keys and values that the next layer has left.
  buffer shared_gradient;
  // f32:
  buffer attention_rstd, feed_forward_rstd;  // [rows]
  buffer softmax_max, softmax_sum;           // [sequences, heads, queries]

  // Calls f(buffer) for each that the forward pass saves.
  template <class F>
  void each_kept(F&& f) {
    each_kept_of(layer_modules::all(), f);
  }
  // Calls f(buffer) for each that some parts of the layer read in their backward pass.
  template <class F>
  void each_kept_of(layer_modules which, F&& f) {
    if (which.has(layer_modules::input_norm)) f(attention_rstd);
    if (which.has(layer_modules::self_attention))
      for (buffer* one :
           {&attention_input, &projected, &attended, &kept_keys, &softmax_max, &softmax_sum})
        f(*one);
    if (which.has(layer_modules::self_attention)) latent.each_kept(f);
    if (which.has(layer_modules::post_attention_norm)) f(middle), f(feed_forward_rstd);
    if (which.has(layer_modules::mlp))
      for (buffer* one : {&feed_forward_input, &gates, &gated, &expert.input, &expert.output,
                          &expert.shared_gates, &expert.shared_gated})
        f(*one);
    if (which.has(layer_modules::expert_input) && !which.has(layer_modules::mlp))
      f(feed_forward_input);
  }
  // Calls f(buffer) for each that deferred weight gradients may read.
  template <class F>
  void each_deferred(F&& f) {
    each_kept(f);
    f(output_gradient), f(middle_gradient), f(projected_gradient);
    f(expert.logits_gradient), f(expert.output_gradient);
    latent.each_gradient(f);
  }
};

class activations {
 public:
  // Serves `depth` layers and micro-batches of at most `largest` sequences, all of the same rows;
  // with `packs` the documents in these sequences, of at most as many rows.
  activations(run_memory& from, std::int64_t depth, batch_shape largest, bool packs = false)
      : residual(static_cast<std::size_t>(depth) + 1),
        layers(static_cast<std::size_t>(depth)),
        largest_(largest),
        inputs_(from.keep(largest.all_tokens() * 4, VELO_PURPOSE_INPUT)),
        targets_(from.keep(largest.tokens() * 4, VELO_PURPOSE_INPUT)) {
    if (packs) documents.emplace(from.keep(largest.tokens() * 4, VELO_PURPOSE_INPUT));
  }

  // Symbols at the start of these buffers: inputs of all tokens, targets of this rank's. Targets
  // below zero do not count.
  std::int32_t* inputs() const { return reinterpret_cast<std::int32_t*>(inputs_.data()); }
  std::int32_t* targets() const { return reinterpret_cast<std::int32_t*>(targets_.data()); }

  // Frees all buffers but the symbols.
  void clear() {
    for (buffer& each : residual) each = {};
    for (layer_activations& each : layers) each = {};
    normed = {};
    logits = {};
    rstd = {};
    lse = {};
    embedded_gradient = {};
  }

  batch_shape largest() const { return largest_; }
  batch_shape batch() const {
    if (documents) return {1, documents->share.rows.count(), documents->share.all_rows()};
    if (split != nullptr) return {sequences, split->count(), split->rows_of_tensor_ranks()};
    return {sequences, largest_.length, largest_.all_length};
  }

  // The shape that buffers are allocated for: the batch, which in a dry run is empty.
  batch_shape room(bool is_dry_run) const {
    if (!is_dry_run) return batch();
    return split != nullptr
               ? batch_shape{largest_.sequences, split->count(), split->rows_of_tensor_ranks()}
               : largest_;
  }

  // The swapper that holds a layer's activations between its passes, or nullptr. each_kept calls
  // f(buffer) for each that `layer` saves.
  swapper* swap = nullptr;
  layer_modules swapped = layer_modules::all();  // the parts of layers that it holds
  template <class F>
  void each_kept(std::size_t layer, F&& f) {
    each_kept_of(layer_modules::all(), layer, f);
  }
  template <class F>
  void each_kept_of(layer_modules which, std::size_t layer, F&& f) {
    if (which.has(layer_modules::input_norm)) f(residual[layer]);
    layers[layer].each_kept_of(which, f);
  }
  // Calls f(buffer) for each that deferred weight gradients may read.
  template <class F>
  void each_deferred(F&& f) {
    for (buffer& each : residual) f(each);
    for (layer_activations& each : layers) each.each_deferred(f);
    for (buffer* one : {&embedded_gradient, &normed, &logits, &rstd, &lse}) f(*one);
  }

  // Reduces gradients over ranks as the backward pass finishes them; nullptr with one rank.
  const data_parallel* reducer = nullptr;
  // This backward pass is the last of the step: the gradients of layers are final after it.
  bool finishes = false;

  std::optional<packed_documents> documents;
  // Where sequences are split: the rows of this object, and by layer what the splits share.
  const sequence_split* split = nullptr;
  std::vector<sequence_keys>* keys = nullptr;
  // The choices of experts where they are recorded or replayed, else nullptr; the number of the
  // first token in the step; whether experts drop choices beyond their capacity; and the counts of
  // choices, or nullptr.
  step_choices* choices = nullptr;
  std::int64_t first_token = 0;
  bool limits = false;
  expert_loads* loads = nullptr;
  // The targets that a mean is over, of all ranks; 0: those of the sequences, as one operator
  // counts them or, where ranks share them, all.
  double counted = 0;

  // The model's own, in its dtype:
  std::int64_t sequences = 0;  // of the forward pass
  std::vector<buffer>
      residual;  // [rows, hidden]; the input of each layer, and the last one's output
  std::vector<layer_activations> layers;
  buffer embedded_gradient;  // [rows, hidden]; if weight gradients are deferred
  buffer normed;             // [rows, hidden]
  buffer logits;             // [tokens, vocab]
  // f32:
  buffer rstd;  // [rows]
  buffer lse;   // [tokens]

 private:
  batch_shape largest_;
  buffer inputs_, targets_;
};

}  // namespace decoder
