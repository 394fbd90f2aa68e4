// The weights in memory, and what training keeps beside them: gradients, f32 masters, and AdamW's
// two moments.
//
// All follow one weight_layout, each in memory of its own. In bf16 a master holds each weight
// exactly and the weight is its rounded copy; in f32 the weight is its own master. Gradients are
// f32 always. Where the optimizer is sharded, masters and moments are those of the rank's own
// ranges, one behind the other. Files are of the whole model: what several ranks have of it goes
// through their group on its way to the one that writes, and each takes its own of what it reads.
#pragma once

#include <velo/velo.hpp>

#include "examples/decoder/files/safetensors.hpp"
#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/model/layout.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

// A velo dtype for each element type of a file.
velo_dtype dtype_of(element type);

class weights {
 public:
  // Without `training` there are only the weights themselves; with `sharded` masters and moments
  // come later, by `shard`.
  weights(run_memory& from, const model_settings& model, bool training, bool sharded = false);
  // Those of a part of the model, `rank`'s.
  weights(member& rank, const model_settings& model, const holding& held, bool sharded);

  // Makes them for these ranges, which are `rank`'s.
  void shard(member& rank, const std::vector<range>& own);

  // What masters and moments are of.
  const std::vector<range>& own() const { return own_; }

  // Draws matrices from a normal distribution and sets norms to one. Projections back into the
  // residual stream are drawn smaller, by the root of how many add up there.
  void initialize(const velo::stream_ref& stream, std::int64_t seed);

  // Parts of the whole, from an offset of the layout.
  velo::tensor_view weight(std::int64_t offset, velo::sizes shape) const;
  velo::tensor_view gradient(std::int64_t offset, velo::sizes shape) const;

  float* first_moment() const { return first_.floats(); }
  float* second_moment() const { return second_.floats(); }
  float* master() const { return master_.floats(); }  // nullptr in f32

  // These three, or in f32 the moments: what may be away between the steps.
  std::vector<buffer*> state();

  // What an update writes.
  std::vector<buffer*> updated();

  bool has_master() const { return type_ == element::bf16; }
  void clear_gradients();

  // What checkpoints hold: under Hugging Face's names the weights, and under prefixed ones what
  // training needs beside them.
  std::vector<named_tensor> files() const;
  std::vector<named_tensor> training_files() const;
  std::vector<named_tensor> master_files() const;  // those of training_files, none in f32
  std::vector<named_tensor> gradient_files() const;

  const weight_layout& layout() const { return layout_; }
  element type() const { return type_; }
  std::int64_t count() const;  // of parameters, padding not counted

 private:
  void keep(run_memory& from, bool training, bool sharded);
  void keep_state(run_memory& from);
  void put(const velo::stream_ref& stream, const weight_slice& slice, const float* exact);
  void add_files(std::vector<named_tensor>& to, const std::string& prefix, element type,
                 void* data) const;
  void add_pieces(std::vector<named_tensor>& to, const std::string& prefix, element type,
                  std::byte* data, const std::vector<range>& own, bool gives) const;
  void add_state(std::vector<named_tensor>& to, const std::string& prefix, const buffer& of) const;

  model_settings model_;
  weight_layout layout_;
  element type_;
  const member* rank_ = nullptr;  // where what files hold is of several ranks
  bool part_ = false;             // of the model
  bool sharded_ = false;
  std::vector<range> own_;
  // Moments and gradients begin at zero, and so does padding everywhere.
  buffer weight_, gradient_, master_, first_, second_;
};

}  // namespace decoder
