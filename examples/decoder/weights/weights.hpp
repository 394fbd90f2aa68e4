// The weights in memory, and their state in training: gradients, f32 masters, and AdamW's two
// moments.
//
// All follow one weight_layout, each in memory of its own. In bf16 a master holds each weight
// exactly and the weight is its rounded copy; in f32 the weight is its own master. Gradients,
// moments and masters are f32, unless narrow_settings keep them in 16 bits: then a master is the
// weight and its residual, with a tie of its rounding in the sign of the second moment
// (velo_bf16_param_split), and files hold the same as without. With a sharded optimizer masters and
// moments are those of the rank's own ranges, one after the other. Files hold the whole model:
// ranks send their parts to the writer through the group, and each reads its own parts.
#pragma once

#include <functional>
#include <velo/velo.hpp>

#include "examples/decoder/files/safetensors.hpp"
#include "examples/decoder/memory/run_memory.hpp"
#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/weights/layout.hpp"

namespace decoder {

// The type of weights and activations, and the velo dtype of a type.
element type_of(const model_settings& model);
velo_dtype dtype_of(element type);

class weights {
 public:
  // Without `training` there are only the weights; with `sharded` masters and moments are made
  // later, by `shard`.
  weights(run_memory& from, const model_settings& model, bool training, bool sharded = false,
          const narrow_settings& narrow = {});
  // The weights of the part of the model that `rank` holds.
  weights(member& rank, const model_settings& model, const holding& held, bool sharded,
          const narrow_settings& narrow);

  // Makes masters and moments for these ranges, which are `rank`'s.
  void shard(member& rank, const std::vector<range>& own);

  // The ranges of masters and moments.
  const std::vector<range>& own() const { return own_; }

  // Draws matrices from a normal distribution and sets norms to one. Projections into the residual
  // stream have a smaller deviation, divided by the root of their number.
  void initialize(const velo::stream_ref& stream, std::int64_t seed);

  // Sets the weights, and their masters where there are some. `give` writes elements
  // [first, first + count) of a whole weight, in f32, and is asked for this rank's parts alone.
  using exact_source = std::function<void(const weight_slice& of, std::int64_t first,
                                          std::int64_t count, float* to)>;
  void fill(const velo::stream_ref& stream, const exact_source& give);

  // Views of a part, from an offset of the layout.
  velo::tensor_view weight(std::int64_t offset, velo::sizes shape) const;
  velo::tensor_view gradient(std::int64_t offset, velo::sizes shape) const;

  // Those of the ranges `own` that are not repeated.
  std::vector<range> counted(const std::vector<range>& own) const;
  velo::tensor_view norm_gradients() const;  // and of matrices that tensor ranks have whole
  velo::tensor_view router_gradients() const;
  velo::tensor_view embedding_gradient() const;

  // The bias f32 [experts] of a layer's router, which is zero unless it is read.
  velo::tensor_view score_bias_of(std::size_t layer) const;
  // Sets all biases; `give` writes one.
  void fill_biases(const std::function<void(const score_bias& of, float* to)>& give);

  std::byte* first_moment() const { return first_.data(); }
  std::byte* second_moment() const { return second_.data(); }
  velo_dtype moment_type() const { return dtype_of(moments()); }
  float* master() const { return has_master() ? master_.floats() : nullptr; }

  // Masters that are residuals: `merge` gives the masters of elements [begin, begin + count) of the
  // layout, at most `most_merged`, in the same memory in each call. Their state begins at element
  // `place` of this rank's. `split` puts them back, and writes the weights.
  bool has_residuals() const { return narrow_.masters; }
  static constexpr std::int64_t most_merged = 1 << 16;
  velo::tensor_view merge(const velo::stream_ref& stream, std::int64_t place, std::int64_t begin,
                          std::int64_t count) const;
  void split(const velo::stream_ref& stream, std::int64_t place, std::int64_t begin,
             std::int64_t count) const;

  // The moments and masters, which may be swapped out between steps; in f32 the moments alone.
  std::vector<buffer*> state();

  // The buffers that an update writes.
  std::vector<buffer*> updated();

  bool has_master() const { return type_ == element::bf16 && !narrow_.masters; }
  void clear_gradients();

  // The bytes of a tensor of several ranks that files give or take at a time.
  void set_piece(std::int64_t bytes) { piece_words_ = bytes / 4; }

  // The tensors of a checkpoint: weights under Hugging Face's names, the state of training under
  // prefixed ones.
  std::vector<named_tensor> files() const;
  std::vector<named_tensor> training_files(const velo::stream_ref& stream) const;
  // Some of training_files; none in f32.
  std::vector<named_tensor> master_files(const velo::stream_ref& stream) const;
  std::vector<named_tensor> gradient_files() const;  // of f32 gradients

  const weight_layout& layout() const { return layout_; }
  element type() const { return type_; }
  std::int64_t count() const;  // parameters, without padding

 private:
  // How files see `count` elements of the layout from `begin` on, whose state begins at `place`.
  template <class Byte>
  using piece = std::function<void(std::int64_t place, std::int64_t begin, std::int64_t count,
                                   Byte* in_file)>;
  struct contents {
    element type;  // in files
    piece<std::byte> read;
    piece<const std::byte> write;
    std::byte* memory = nullptr;  // where the elements of files lie in memory as they are
  };

  void keep(run_memory& from, bool training, bool sharded);
  void keep_state(run_memory& from);
  void put(const velo::stream_ref& stream, const weight_slice& slice, const float* exact);
  void put_masters(const velo::stream_ref& stream, std::int64_t place, std::int64_t begin,
                   std::int64_t count, const float* exact) const;
  velo::tensor_view residual(std::int64_t place, std::int64_t count) const;
  velo::tensor_view second(std::int64_t place, std::int64_t count) const;
  element moments() const { return narrow_.moments ? element::bf16 : element::f32; }
  element gradients() const { return narrow_.gradients ? element::bf16 : element::f32; }

  static contents plain(element type, std::byte* data);
  contents moments_in_files(const buffer& of) const;
  contents masters_in_files(const velo::stream_ref& stream) const;
  void add_files(std::vector<named_tensor>& to, const std::string& prefix, element type,
                 void* data) const;
  void add_pieces(std::vector<named_tensor>& to, const std::string& prefix, const contents& of,
                  const std::vector<range>& own, bool all_give) const;
  bool leads(const weight_slice& of) const;
  contents gradients_in_files() const;
  void add_state(std::vector<named_tensor>& to, const std::string& prefix,
                 const contents& of) const;
  void add_biases(std::vector<named_tensor>& to) const;

  model_settings model_;
  weight_layout layout_;
  element type_;
  narrow_settings narrow_;
  const member* rank_ = nullptr;  // where several ranks hold the contents of files
  bool part_ = false;             // of the model
  bool sharded_ = false;
  std::vector<range> own_;
  std::int64_t piece_words_ = 1 << 20;
  // Moments and gradients begin at zero, and so does padding everywhere. With residuals these are
  // in master_, and merged_ has some masters for a moment.
  buffer weight_, gradient_, master_, first_, second_, merged_;
  buffer biases_;  // as layout_.biases lists them
};

}  // namespace decoder
