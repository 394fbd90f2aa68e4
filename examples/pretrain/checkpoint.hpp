// A checkpoint is a directory that is either whole or not there:
//
//   model.safetensors           weights under Hugging Face's Llama names, in the model's dtype
//   config.json                 the shape, under the keys that transformers' LlamaConfig reads
//   training_state.safetensors  f32 masters, moments and the losses so far
//   trainer.json                step, checksum of the data, all settings
//   CHECKSUMS                   CRC-32, size and name of each file above, and last a CRC-32 of
//                               these lines
//
// Saving writes a directory aside, syncs every file and the directory, and renames it into place;
// whatever fails on the way, the previous checkpoint is still there. Reading believes no byte that
// its checksum does not cover.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "safetensors.hpp"
#include "settings.hpp"

namespace pretrain {

struct checkpoint {
  std::int64_t step = 0;
  std::uint32_t data_crc = 0;
  std::string settings;  // JSON, as configuration::json writes it
  model_settings model;
  std::int64_t sequence = 0;
  std::vector<named_tensor> weights, state;
};

void save_checkpoint(const std::string& path, const checkpoint& contents);

// Opening checks the files' sizes and checksums; the tensors are read when the model is
// ready for them.
class checkpoint_reader {
 public:
  explicit checkpoint_reader(const std::string& path);

  std::int64_t step() const { return step_; }
  std::uint32_t data_crc() const { return data_crc_; }
  const std::string& settings() const { return settings_; }
  std::string settings_name() const { return path_ + "/trainer.json"; }

  void read_weights(const std::vector<named_tensor>& into) const;
  void read_state(const std::vector<named_tensor>& into) const;

 private:
  void verify() const;
  void read_trainer();

  std::string path_;
  std::int64_t step_ = 0;
  std::uint32_t data_crc_ = 0;
  std::string settings_;
};

// config.json of a model of this shape; `sequence` is the longest window it was trained on.
std::string hugging_face_config(const model_settings& model, std::int64_t sequence);

}  // namespace pretrain
