// The data with which another framework repeats a run and compares: --trace DIR.
//
//   weights.safetensors    before the first step
//   gradients.safetensors  of the first step, summed over its micro-batches, before clipping; f32
//   symbols.i32            for every micro-batch its inputs, then its targets, each
//                          [batch, sequence] of 32-bit integers
//
// Tests and benches train the same model elsewhere from these. Ordinary runs do not write them.
#pragma once

#include <memory>
#include <string>

#include "examples/decoder/files/file.hpp"
#include "examples/decoder/weights/weights.hpp"

namespace decoder {

class parity_trace {
 public:
  explicit parity_trace(
      const std::string& directory);  // made if it is missing; files in it are replaced

  void initial(const weights& all);
  void first_gradients(const weights& all);
  void symbols(const std::int32_t* inputs, const std::int32_t* targets, std::int64_t count);

 private:
  std::string fresh(const char* name) const;

  std::string directory_;
  std::unique_ptr<durable_file> symbols_;
};

}  // namespace decoder
