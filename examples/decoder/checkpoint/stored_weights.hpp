// Weights in files, with which a run starts: a checkpoint of pretrain, or a model that transformers
// wrote.
//
// The files are opened and checked before memory is taken, and read when the weights are there.
// Each rank reads its own parts, whatever part of the model it holds; several threads may read at
// once.
#pragma once

#include "examples/decoder/weights/weights.hpp"

namespace decoder {

class stored_weights {
 public:
  stored_weights() = default;
  stored_weights(const stored_weights&) = delete;
  stored_weights& operator=(const stored_weights&) = delete;
  virtual ~stored_weights() = default;

  // Sets the weights, and their masters where there are some.
  virtual void read(weights& into, const velo::stream_ref& stream) const = 0;
};

}  // namespace decoder
