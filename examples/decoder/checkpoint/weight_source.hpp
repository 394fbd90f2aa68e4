// What the weights of a run are read from: a checkpoint of pretrain, or a model that transformers
// wrote.
//
// A source is opened and checked before memory is taken, and read when the weights are there. Each
// rank reads its own parts, whatever part of the model it holds; several threads may read at once.
#pragma once

#include "examples/decoder/weights/weights.hpp"

namespace decoder {

class weight_source {
 public:
  weight_source() = default;
  weight_source(const weight_source&) = delete;
  weight_source& operator=(const weight_source&) = delete;
  virtual ~weight_source() = default;

  // Sets the weights, and their masters where there are some.
  virtual void read(weights& into, const velo::stream_ref& stream) const = 0;
};

}  // namespace decoder
