// The angles of the rotary embedding: position p turns feature pair i by p / theta^(2i
// / head width).
//
// Two tables [1, rows, 1, head width] for all layers and heads; in the half mode the second half
// repeats the first.
#pragma once

#include <vector>
#include <velo/velo.hpp>

#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

class rotary_table {
 public:
  // positions: of the rows of a sequence.
  rotary_table(run_memory& from, const model_settings& model,
               const std::vector<std::int64_t>& positions);

  velo::tensor_view cosines() const { return {cosines_, {1, rows_, 1, width_}}; }
  velo::tensor_view sines() const { return {sines_, {1, rows_, 1, width_}}; }

 private:
  std::int64_t rows_, width_;
  buffer memory_;
  float *cosines_, *sines_;
};

}  // namespace decoder
