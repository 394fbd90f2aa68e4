// A folder that LlamaForCausalLM.save_pretrained wrote, whatever program called it:
//
//   config.json                   the shape, for configuration::read_llama
//   model.safetensors             all tensors, f32 or bf16; or instead
//   model.safetensors.index.json  the file of each tensor, "weight_map"
//   model-00001-of-00002.safetensors, ..
//
// There are weights alone: no moments, no step, no checksums. Opening checks every header and the
// index against them; the files stay open, so that what was checked is what is read. A rank reads
// the runs of elements that lie in its part, and no others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "examples/decoder/checkpoint/stored_weights.hpp"
#include "examples/decoder/files/safetensors.hpp"

namespace decoder {

// Whether a directory has a config.json, and none of the files that make it a checkpoint of a run.
bool is_llama_folder(const std::string& path);

class llama_folder : public stored_weights {
 public:
  explicit llama_folder(const std::string& path);

  std::string config_name() const { return path_ + "/config.json"; }
  const std::string& config() const { return config_; }  // the text of config.json

  // Refuses tensors that are not this model's, before memory is allocated for it.
  void require_model(const model_settings& model) const;

  void read(weights& into, const velo::stream_ref& stream) const override;

 private:
  void read_index(const std::string& name);
  void add(const std::string& tensor, std::size_t file);
  const safetensors_reader& file_of(const std::string& tensor) const;
  const safetensors_reader::entry& entry_of(const std::string& tensor) const;
  void require_same(const std::string& one, const std::string& other) const;

  std::string path_, config_, listed_in_;
  std::vector<safetensors_reader> files_;
  std::map<std::string, std::size_t> file_of_;  // by tensor
};

}  // namespace decoder
