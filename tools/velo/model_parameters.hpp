// The parameters of a model by its Hugging Face config.json, each with the axes that cut it.
//
// Names and shapes are those of transformers' checkpoints, an expert's weights by themselves. Cuts
// are Megatron-LM's: the first product of a block by rows of its weight (heads, inner size), the
// second by columns, the vocabulary by rows; query heads by groups of their key head, or one by one
// where there are more tensor ranks than key heads, which ranks then share. With tp in two
// dimensions both dimensions of a weight are cut. Experts are dealt out over ep, and cut by etp.
// Layers, and places without one, are dealt out over the stages as pretrain does it
// (stage_layers.hpp).
// Prediction modules behind the last layer are left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/stage_layers.hpp"

namespace command {

struct model_cuts {
  velo_topology_desc job;                   // sizes of the axes
  bool sequence_parallel = true;            // norms see a part of the sequence where tp > 1
  std::vector<std::int64_t> empty_places;   // ascending: of layers and these, those without a layer
  std::optional<stage_list> stage_layers;   // nothing: evenly
  std::vector<std::int64_t> rank_of_stage;  // of the pp ranks
};

// Adds the parameters of the model in a file. Throws input_error, with the key that is missing or
// makes no sense.
void add_parameters(const std::string& file, const model_cuts& cuts, velo::sharding& to);

}  // namespace command
