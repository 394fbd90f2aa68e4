// The angles of the rotary embedding: position p turns feature pair i by p / theta^(2i
// / head width).
//
// Two tables for all layers and heads: a row for each row of a sequence, or where documents are
// packed for each position in one. In the half mode the second half of a row repeats the first;
// with latent attention, whose pairs are neighbors, these are alike. `head width` is here that of
// the elements that are rotated.
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

  // [1, rows, 1, head width] or, to be read at positions, [rows, head width].
  velo::tensor_view cosines(bool at_positions) const { return table(cosines_, at_positions); }
  velo::tensor_view sines(bool at_positions) const { return table(sines_, at_positions); }
  velo::rotary_mode mode() const {
    return are_neighbors_ ? velo::rotary_mode::interleaved : velo::rotary_mode::half;
  }
  // The angles of some rows in a sequence, [1, count, 1, head width].
  velo::tensor_view cosines(std::int64_t first, std::int64_t count) const {
    return {cosines_ + first * width_, {1, count, 1, width_}};
  }
  velo::tensor_view sines(std::int64_t first, std::int64_t count) const {
    return {sines_ + first * width_, {1, count, 1, width_}};
  }

 private:
  velo::tensor_view table(float* of, bool at_positions) const {
    if (at_positions) return {of, {rows_, width_}};
    return {of, {1, rows_, 1, width_}};
  }

  std::int64_t rows_, width_;
  bool are_neighbors_;
  buffer memory_;
  float *cosines_, *sines_;
};

}  // namespace decoder
