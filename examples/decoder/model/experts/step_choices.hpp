// The experts that the tokens of a step chose, layer by layer, in the order that one rank has them:
// recorded, or read from a recording and used in place of what the router would choose.
//
// A recording is a directory with a safetensors file a step, "step-000001.safetensors": a tensor
// "layer.N" i32 [tokens of the step, choices of a token] for each layer with experts, and the step,
// model and data of these. Each rank writes and reads the rows of its own tokens, so a recording
// does not depend on the layout. Cost: 4 bytes a choice on each rank, and where ranks record a sum
// over them once a step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "examples/decoder/files/safetensors.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

class step_choices {
 public:
  // data_crc: of the text that windows are taken from. `rank` must outlive the object.
  step_choices(const member& rank, const settings& values, std::uint32_t data_crc);

  bool replays() const { return !replayed_.empty(); }

  // Reads the choices of a step, from 1, if they are replayed. Throws failure if they are not this
  // model's and data's.
  void begin(std::int64_t step);
  // Writes the step's choices, if they are recorded; all ranks call it.
  void end();

  // The choices of a token, numbered in the step, in a layer.
  std::int32_t* of(std::size_t layer, std::int64_t token) {
    return &layers_[layer][static_cast<std::size_t>(token * choices_)];
  }

  // The name of a step's file.
  static std::string file_of(const std::string& directory, std::int64_t step);

 private:
  std::vector<named_tensor> tensors();
  std::map<std::string, std::string> origin_of_step() const;
  void require_choices(const std::string& path) const;

  const member& rank_;
  const std::string recorded_, replayed_;  // directories, or empty
  std::map<std::string, std::string> origin_;
  std::int64_t tokens_, choices_, experts_, step_ = 0;
  std::vector<std::vector<std::int32_t>> layers_;
};

}  // namespace decoder
