// What a micro-batch keeps from its forward pass to its backward pass: its symbols, what its layers
// made, and what lies around them.
//
// A buffer exists from the operator that writes it to the last that reads it. Several micro-batches
// may be between their passes at a time, each with an object of its own; an object serves one
// micro-batch after another and takes nothing from the heap for that.
#pragma once

#include <vector>

#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

class exchange;
class rotary_table;
class swapper;

// How many sequences a call works on, and how long each is.
struct batch_shape {
  std::int64_t sequences, length;
  std::int64_t tokens() const { return sequences * length; }
};

// What every call of a pass needs to know. Buffers are taken for `room`, which is the batch, but in
// a rehearsal: there the batch has no sequences.
struct pass {
  velo::stream_ref stream;
  run_memory& memory;
  const rotary_table& angles;
  batch_shape batch, room;
};

// Of a layer; what is empty can be made again from its input. [tokens, ..] in the model's dtype:
struct layer_activations {
  buffer attention_input;     // hidden; normed
  buffer projected;           // hidden + 2 kv; rotated queries and keys, and values
  buffer attended;            // hidden
  buffer middle;              // hidden
  buffer feed_forward_input;  // hidden; normed
  buffer gates;               // 2 inner; the backward pass overwrites it with its gradient
  buffer gated;               // inner
  // Gradients of what the products of the weights' gradients take, where those are put off; gates
  // is the fourth:
  buffer output_gradient, middle_gradient;  // hidden
  buffer projected_gradient;                // hidden + 2 kv
  // f32:
  buffer attention_rstd, feed_forward_rstd;  // [tokens]
  buffer softmax_max, softmax_sum;           // [sequences, heads, length]

  // f(buffer) for each that is kept from the forward pass.
  template <class F>
  void each_kept(F&& f) {
    for (buffer* one :
         {&attention_input, &projected, &attended, &middle, &feed_forward_input, &gates, &gated,
          &attention_rstd, &feed_forward_rstd, &softmax_max, &softmax_sum})
      f(*one);
  }
};

class activations {
 public:
  // Of micro-batches of at most `largest` sequences, all of the same length, in so many layers.
  activations(run_memory& from, std::int64_t depth, batch_shape largest)
      : residual(static_cast<std::size_t>(depth) + 1),
        layers(static_cast<std::size_t>(depth)),
        largest_(largest),
        inputs_(from.keep(largest.tokens() * 4, VELO_PURPOSE_INPUT)),
        targets_(from.keep(largest.tokens() * 4, VELO_PURPOSE_INPUT)) {}

  // Symbols [sequences, length], at the start of these buffers. A target below zero does not count.
  std::int32_t* inputs() const { return reinterpret_cast<std::int32_t*>(inputs_.data()); }
  std::int32_t* targets() const { return reinterpret_cast<std::int32_t*>(targets_.data()); }

  // Gives all buffers back but the symbols.
  void clear() {
    for (buffer& each : residual) each = {};
    for (layer_activations& each : layers) each = {};
    normed = {}, logits = {}, rstd = {}, lse = {}, embedded_gradient = {};
  }

  batch_shape largest() const { return largest_; }
  batch_shape batch() const { return {sequences, largest_.length}; }

  // Between its passes a layer's part may wait elsewhere: f(buffer) for each of what `layer` keeps.
  swapper* away = nullptr;
  template <class F>
  void each_kept(std::size_t layer, F&& f) {
    f(residual[layer]);
    layers[layer].each_kept(f);
  }

  // Who is told which gradients the backward pass has finished; nullptr: nobody.
  const exchange* told = nullptr;

  // The model's; [tokens, ..] in its dtype:
  std::int64_t sequences = 0;    // of the forward pass
  std::vector<buffer> residual;  // hidden; the input of each layer, and what the last gives
  std::vector<layer_activations> layers;
  buffer embedded_gradient;  // hidden; where the weights' gradients are put off
  buffer normed;             // hidden
  buffer logits;             // vocab
  // f32:
  buffer rstd, lse;  // [tokens]

 private:
  batch_shape largest_;
  buffer inputs_, targets_;
};

}  // namespace decoder
