// A checkpoint is a directory that is either whole or not there:
//
//   model.safetensors           weights under Hugging Face's Llama names, in the model's dtype
//   config.json                 the shape, under the keys that transformers' LlamaConfig reads
//   training_state.safetensors  f32 masters, moments and the losses so far
//   trainer.json                step, checksum of the data, validations so far, all settings
//   CHECKSUMS                   CRC-32, size and name of each file above, and last a CRC-32 of
//                               these lines
//
// Saving writes a directory aside, syncs every file and the directory, and renames it into place;
// after any failure the previous checkpoint is still there. Reading trusts no byte without its
// checksum, and no number that contradicts another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/decoder/checkpoint/stored_weights.hpp"
#include "examples/decoder/files/safetensors.hpp"
#include "examples/decoder/report/loss_curve.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

struct checkpoint {
  std::int64_t step = 0;
  std::uint32_t data_crc = 0;
  std::string settings;  // JSON, as configuration::json writes it
  std::vector<loss_point> validations;
  model_settings model;
  std::int64_t sequence = 0;
  std::vector<named_tensor> weights, state;
};

// Replaces a checkpoint at `path`; with a `keep_as` that one is first renamed.
void save_checkpoint(const std::string& path, const checkpoint& contents,
                     const std::string& keep_as = "");

// Refuses a `path` at which no checkpoint could be saved: something else is there, or nothing can
// be made beside it.
void require_place(const std::string& path);

// Whether CHECKSUMS, the last file of a save, is complete.
bool is_sealed(const std::string& path);

// Opening checks the files' sizes and checksums; the tensors are read when the model is
// ready for them.
class checkpoint_reader : public stored_weights {
 public:
  // `path` is the checkpoint, or the folder that a run was given for its output.
  explicit checkpoint_reader(const std::string& path);

  const std::string& path() const { return path_; }
  std::string out() const;  // the output folder of a run around it; empty without one

  std::int64_t step() const { return step_; }
  std::uint32_t data_crc() const { return data_crc_; }
  const std::vector<loss_point>& validations() const { return validations_; }

  // The text of trainer.json, whose member "settings" is for configuration::read_text.
  const std::string& trainer() const { return trainer_; }
  std::string trainer_name() const { return path_ + "/trainer.json"; }

  // Refuses a config.json or shapes of weights that differ from this model's, before memory is
  // allocated for it.
  void require_model(const model_settings& model, std::int64_t sequence) const;

  // Refuses a checkpoint that was saved here since this reader opened it. One that require_place
  // has moved into place meanwhile is followed there.
  void require_unchanged();

  void read(weights& into, const velo::stream_ref& stream) const override;
  void read_weights(const std::vector<named_tensor>& into) const;
  void read_state(const std::vector<named_tensor>& into) const;

 private:
  void find(const std::string& path);
  void verify();
  void read_trainer();

  std::string path_, checksums_;
  std::int64_t step_ = 0;
  std::uint32_t data_crc_ = 0;
  std::vector<loss_point> validations_;
  std::string trainer_;
};

// The config.json of a model of this shape; `sequence` is the longest window in its training.
std::string hugging_face_config(const model_settings& model, std::int64_t sequence);

}  // namespace decoder
