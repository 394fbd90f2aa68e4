// The weights in memory, and their state in training: gradients, f32 masters, and AdamW's two
// moments.
//
// All follow one weight_layout, each in memory of its own. In bf16 a master holds each weight
// exactly and the weight is its rounded copy; in f32 the weight is its own master. Gradients are
// always f32. With a sharded optimizer masters and moments are those of the rank's own ranges, one
// after the other. Files hold the whole model: ranks send their parts to the writer through the
// group, and each reads its own parts.
#pragma once

#include <velo/velo.hpp>

#include "examples/decoder/files/safetensors.hpp"
#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/model/layout.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

// The velo dtype of an element type of files.
velo_dtype dtype_of(element type);

class weights {
 public:
  // Without `training` there are only the weights; with `sharded` masters and moments are made
  // later, by `shard`.
  weights(run_memory& from, const model_settings& model, bool training, bool sharded = false);
  // The weights of the part of the model that `rank` holds.
  weights(member& rank, const model_settings& model, const holding& held, bool sharded);

  // Makes masters and moments for these ranges, which are `rank`'s.
  void shard(member& rank, const std::vector<range>& own);

  // The ranges of masters and moments.
  const std::vector<range>& own() const { return own_; }

  // Draws matrices from a normal distribution and sets norms to one. Projections into the residual
  // stream have a smaller deviation, divided by the root of their number.
  void initialize(const velo::stream_ref& stream, std::int64_t seed);

  // Views of a part, from an offset of the layout.
  velo::tensor_view weight(std::int64_t offset, velo::sizes shape) const;
  velo::tensor_view gradient(std::int64_t offset, velo::sizes shape) const;

  float* first_moment() const { return first_.floats(); }
  float* second_moment() const { return second_.floats(); }
  float* master() const { return master_.floats(); }  // nullptr in f32

  // The masters and moments, which may be swapped out between steps; in f32 the moments alone.
  std::vector<buffer*> state();

  // The buffers that an update writes.
  std::vector<buffer*> updated();

  bool has_master() const { return type_ == element::bf16; }
  void clear_gradients();

  // The tensors of a checkpoint: weights under Hugging Face's names, the state of training under
  // prefixed ones.
  std::vector<named_tensor> files() const;
  std::vector<named_tensor> training_files() const;
  std::vector<named_tensor> master_files() const;  // some of training_files; none in f32
  std::vector<named_tensor> gradient_files() const;

  const weight_layout& layout() const { return layout_; }
  element type() const { return type_; }
  std::int64_t count() const;  // parameters, without padding

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
  const member* rank_ = nullptr;  // where several ranks hold the contents of files
  bool part_ = false;             // of the model
  bool sharded_ = false;
  std::vector<range> own_;
  // Moments and gradients begin at zero, and so does padding everywhere.
  buffer weight_, gradient_, master_, first_, second_;
};

}  // namespace decoder
