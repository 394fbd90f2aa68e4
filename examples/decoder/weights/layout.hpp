// The place of each weight: one row of elements holds them all; gradients, f32 masters and moments
// are rows of the same layout. So the optimizer sees two long vectors (decayed and not) instead of
// many tensors. Norms come first, so that ranks that gather weights in this order have them before
// the first layer.
//
// The three projections of attention lie end to end and form one matrix for the products, as do
// gate and up of the feed-forward block; in files each has Hugging Face's name. Matrices are stored
// [out, in]. A rank that holds a part of the model has the row of that part: some layers, and with
// tensor ranks a part of each matrix, cut by velo_sharding along the outputs of projections, gate,
// up, embedding and head, and along the inputs of those that lead back to the residual stream; in
// two dimensions (hidden_parallel.hpp) along both, and norms too. Where there are more tensor ranks
// than heads of keys, neighbors have the projections of the same head. A layer that shares keys and
// values with the one before it has the projection of queries alone.
//
// With experts a layer has a router and the experts' matrices in place of its feed-forward block.
// Routers follow the norms, since each tensor rank has them whole, too. Experts come last, layer by
// layer: they are shared with other ranks than the rest (data_parallel.hpp). Gate and up of an
// expert lie end to end, and so do all experts of the rank: one matrix [experts, out, in] for the
// grouped products. An expert rank has whole experts, whatever tensor rank it is, or, with etp,
// this tensor rank's part of them, cut as gate, up and down of a feed-forward block. A shared
// expert is a feed-forward block like another, cut over tensor ranks. The biases by which routers
// choose are no weights: no gradient changes them. They are f32 in memory of their own, the whole
// model's on each rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "examples/decoder/settings.hpp"

namespace decoder {

// Elements of the row.
struct range {
  std::int64_t begin, count;
};

struct weight_slice {
  std::string name;                        // "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;         // of this rank's part
  std::vector<std::int64_t> whole, begin;  // shape of the whole weight; where the part begins
  std::int64_t offset;                     // in elements
  std::size_t number;                      // in the whole model
  bool repeated;  // another rank has it, too: an earlier tensor rank, or the first stage
  bool of_expert = false;
  std::int64_t elements() const;

  // Calls f(place, from, count) for each run of elements [begin, begin + count) of the whole weight
  // that lies in the part: from element `from` of the whole, `place` of the part.
  template <class F>
  void each_run(std::int64_t first, std::int64_t count, F&& f) const;
  // The same of all elements.
  template <class F>
  void each_run(F&& f) const {
    std::int64_t all = 1;
    for (const std::int64_t size : whole) all *= size;
    each_run(0, all, f);
  }
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

template <class F>
void weight_slice::each_run(std::int64_t first, std::int64_t count, F&& f) const {
  const bool matrix = shape.size() == 2;
  std::int64_t rows = matrix ? shape[0] : 1, columns = matrix ? shape[1] : shape[0];
  std::int64_t row = matrix ? whole[1] : whole[0];
  const std::int64_t at = matrix ? begin[0] * row + begin[1] : begin[0];
  if (columns == row) row = columns *= std::exchange(rows, 1);
  const std::int64_t skipped = std::clamp<std::int64_t>((first - at) / row, 0, rows);
  for (std::int64_t r = skipped; r < rows && at + r * row < first + count; ++r) {
    const std::int64_t from = std::max(first, at + r * row),
                       to = std::min(first + count, at + r * row + columns);
    if (from < to) f(r * columns + (from - at - r * row), from, to - from);
  }
}

// The parts of a model that a rank holds: layers, the embedding, and the last norm with the head;
// of each matrix the part of a tensor rank.
struct holding {
  std::vector<bool> layers;  // by layer
  bool embedding, head;
  int tensor_rank = 0, tensor_ranks = 1;
  int tensor_x = 0;  // tensor ranks along x, in two dimensions; 0: in one
  int expert_rank = 0, expert_ranks = 1;
  bool cuts_experts = false;  // over tensor ranks

  // The rank's place along x; in one dimension all tensor ranks are along it.
  int place_x() const { return tensor_x > 0 ? tensor_rank % tensor_x : tensor_rank; }
  int ranks_x() const { return tensor_x > 0 ? tensor_x : tensor_ranks; }

  static holding all(const model_settings& model) {
    return {std::vector<bool>(static_cast<std::size_t>(model.layers), true), true, true};
  }
};

// The widths of a tensor rank's part of a layer, and its symbols.
struct part_widths {
  std::int64_t heads, kv_heads, head_dim, value_dim;
  std::int64_t inner, shared;  // shared: width of the shared expert
  std::int64_t vocab_begin, vocab;
  std::int64_t hidden;       // columns of the residual stream
  std::int64_t experts = 0;  // of this rank, in each layer
  std::int64_t expert_inner = 0;

  std::int64_t attended() const { return heads * value_dim; }
  std::int64_t queries() const { return heads * head_dim; }
  // Queries, keys and values of a token, side by side.
  std::int64_t qkv() const { return queries() + keys(); }
  std::int64_t keys() const { return 2 * kv_heads * head_dim; }  // and values
};

struct layer_layout {
  // Matrices; -1: another rank's. gate_up and down are those of the feed-forward block, in a layer
  // with experts those of the shared one.
  std::int64_t qkv = -1, out = -1, gate_up = -1, down = -1;
  // Latent attention's matrices of low rank and their norms, and the matrix that expands keys and
  // values; its qkv has queries alone. key_low ends with the rows of the rotated part of keys.
  std::int64_t query_low = -1, key_low = -1, query_norm = -1, key_norm = -1, expand = -1;
  std::int64_t attention_norm = -1, feed_forward_norm = -1;
  std::int64_t router = -1, experts_up = -1, experts_down = -1;
  bool owns_keys = true;  // qkv has the rows of keys and values
};

// f32 [experts], which a layer's router adds to the scores to choose by.
struct score_bias {
  std::string name;
  std::size_t layer;
};

struct weight_layout {
  explicit weight_layout(const model_settings& model) : weight_layout(model, holding::all(model)) {}
  weight_layout(const model_settings& model, const holding& held);

  std::vector<weight_slice> slices;
  std::vector<score_bias> biases;  // one behind the other
  part_widths widths;
  std::vector<layer_layout> layers;  // of the whole model
  std::int64_t embedding = -1, head = -1, final_norm = -1;
  std::int64_t decayed = 0;  // elements before this are norms, those from here on matrices
  // Elements from `decayed` to here are latent attention's matrices of low rank, which each tensor
  // rank has whole, as norms; those from here to routers_end are routers.
  std::int64_t low_end = 0;
  std::int64_t routers_end = 0;
  std::int64_t experts = 0;  // elements from here on are those of experts; total: there are none
  // A multiple of 16, like every matrix's and norm's offset; 16 that stay 0 where a rank has none.
  std::int64_t total = 0;

 private:
  class tensor_cuts;
  std::int64_t add(bool held, const std::string& name, const tensor_cuts& cuts,
                   bool repeated = false, const char* part = nullptr);
  void add_norms(const model_settings& m, const holding& held, const tensor_cuts& cuts);
  void add_low_ranks(const model_settings& m, const holding& held, const tensor_cuts& cuts);
  void add_attention(const model_settings& m, const holding& held, std::size_t layer,
                     const tensor_cuts& cuts);
  void add_routers(const model_settings& m, const holding& held, const tensor_cuts& cuts);
  void add_matrices(const model_settings& m, const holding& held, const tensor_cuts& cuts);
  void add_feed_forward(bool is_shared, bool held, std::size_t layer, const tensor_cuts& cuts);
  void add_experts(const model_settings& m, const holding& held, const tensor_cuts& cuts);
  void align() { total = (total + 15) / 16 * 16; }
  std::size_t numbered_ = 0;
};

}  // namespace decoder
