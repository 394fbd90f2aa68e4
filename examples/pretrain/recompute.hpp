// Which layers make again in the backward pass what they made in the forward pass, and what of it.
//
// What is made again comes from the same operators on the same numbers: losses have the same bits
// with every kind.
#pragma once

#include <cstdint>
#include <vector>

#include "settings.hpp"

namespace pretrain {

struct layer_recompute {
  bool whole = false;       // all of the layer, from its input
  bool attention = false;   // core attention: scores, softmax, and their product with the values
  bool activation = false;  // the output of the feed-forward block's gating
  bool norms = false;       // the outputs of both norms
  std::int64_t first = 0;   // the layer from whose input this one is made again; of `whole`
};

// For every layer of the model.
std::vector<layer_recompute> recompute_of(const memory_settings& memory, std::int64_t layers);

}  // namespace pretrain
