// The place of each weight: one row of elements holds them all; gradients, f32 masters and moments
// are rows of the same layout. So the optimizer sees two long vectors (decayed and not) instead of
// many tensors.
//
// The three projections of attention lie end to end and form one matrix for the products, as do
// gate and up of the feed-forward block; in files each has Hugging Face's name. Matrices are stored
// [out, in]. A rank that holds a part of the model has the row of that part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "examples/decoder/settings.hpp"

namespace decoder {

struct weight_slice {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;
  std::int64_t offset;  // in elements
  std::size_t number;   // in the whole model
  std::int64_t elements() const;
};

// Elements of the row.
struct range {
  std::int64_t begin, count;
};

// Calls f(place, begin, count) for each piece of [begin, begin + count) in `own`, whose elements
// lie one after the other.
template <class F>
void each_own(const std::vector<range>& own, std::int64_t begin, std::int64_t count, F&& f) {
  std::int64_t place = 0;
  for (const range& each : own) {
    const std::int64_t from = std::max(begin, each.begin),
                       to = std::min(begin + count, each.begin + each.count);
    if (from < to) f(place + (from - each.begin), from, to - from);
    place += each.count;
  }
}

// The parts of a model that a rank holds: layers, the embedding, and the last norm with the head.
struct holding {
  std::vector<bool> layers;  // by layer
  bool embedding, head;

  static holding all(const model_settings& model) {
    return {std::vector<bool>(static_cast<std::size_t>(model.layers), true), true, true};
  }
};

struct layer_layout {
  std::int64_t qkv = -1, out = -1, gate_up = -1, down = -1;  // matrices; -1: another rank's
  std::int64_t attention_norm = -1, feed_forward_norm = -1;
};

struct weight_layout {
  explicit weight_layout(const model_settings& model) : weight_layout(model, holding::all(model)) {}
  weight_layout(const model_settings& model, const holding& held);

  std::vector<weight_slice> slices;
  std::vector<layer_layout> layers;  // of the whole model
  std::int64_t embedding = -1, head = -1, final_norm = -1;
  std::int64_t decayed = 0;  // elements before this are matrices, those behind are norms
  std::int64_t total = 0;    // a multiple of 16, like every matrix's and norm's offset

 private:
  std::int64_t add(bool held, const std::string& name, std::vector<std::int64_t> shape);
  void align() { total = (total + 15) / 16 * 16; }
  std::size_t numbered_ = 0;
};

}  // namespace decoder
