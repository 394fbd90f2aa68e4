// Where each weight lies: one row of elements holds them all, and the gradients, the f32 masters
// and the moments are rows of the same layout. So the optimizer sees two long vectors (decayed and
// not) instead of many tensors.
//
// The three projections of attention lie end to end and are one matrix to the products, and so are
// gate and up of the feed-forward block; in files each has its own name, Hugging Face's. Matrices
// are stored [out, in].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings.hpp"

namespace pretrain {

struct weight_slice {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;
  std::int64_t offset;  // in elements
  std::int64_t elements() const;
};

// Elements of the row.
struct range {
  std::int64_t begin, count;
};

struct layer_layout {
  std::int64_t qkv, out, gate_up, down;  // matrices
  std::int64_t attention_norm, feed_forward_norm;
};

struct weight_layout {
  explicit weight_layout(const model_settings& model);

  std::vector<weight_slice> slices;
  std::vector<layer_layout> layers;
  std::int64_t embedding = 0, head = 0, final_norm = 0;
  std::int64_t decayed = 0;  // elements before this are matrices, those behind are norms
  std::int64_t total = 0;    // a multiple of 16, like every matrix's and norm's offset

 private:
  std::int64_t add(const std::string& name, std::vector<std::int64_t> shape);
  void align() { total = (total + 15) / 16 * 16; }
};

}  // namespace pretrain
