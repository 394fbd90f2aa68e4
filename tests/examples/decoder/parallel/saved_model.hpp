// Saves a model that ranks share, as the main job does, and reads the files.
#pragma once

#include <string>

#include "tests/examples/decoder/parallel/shared_model.hpp"

inline void save(decoder::member& rank, decoder::trainer& one, const std::string& path) {
  const decoder::checkpoint now = one.state("{}");
  if (rank.leads())
    decoder::save_checkpoint(path, now, "");
  else
    decoder::trainer::give(now);
}

inline std::string contents_of(const std::string& checkpoint) {
  return get(checkpoint + "/model.safetensors") + get(checkpoint + "/training_state.safetensors");
}
