// The trainer: one optimizer step after another, and the state with which a run resumes.
//
// A step depends on its number, the settings and the state in `checkpoint`, and on nothing else: a
// resumed run has the bits of one that never stopped. A step of one rank allocates nothing but
// records of regions. Several copies divide each micro-batch; the averaged gradients, and so the
// weights, have the same bits on all. A copy with stages on several ranks is a pipeline
// (pipeline.hpp).
#pragma once

#include <optional>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "examples/decoder/checkpoint/parity_trace.hpp"
#include "examples/decoder/data/corpus.hpp"
#include "examples/decoder/data/training_windows.hpp"
#include "examples/decoder/data/window_writer.hpp"
#include "examples/decoder/model/experts/expert_loads.hpp"
#include "examples/decoder/model/experts/step_choices.hpp"
#include "examples/decoder/model/model.hpp"
#include "examples/decoder/optimizer/optimizer.hpp"
#include "examples/decoder/parallel/data_parallel.hpp"
#include "examples/decoder/pipeline/pipeline.hpp"
#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/train/validation.hpp"

namespace decoder {

class trainer {
 public:
  // The rank (already split, if the model is in stages), text and settings must outlive the
  // trainer. A trace, if the settings ask for one, begins with the first step.
  trainer(member& rank, const settings& values, const corpus& text);

  // The most bytes that buffers of a rank will hold at one time with these memory settings. All
  // ranks call it, and adapt.
  std::int64_t peak_bytes(const memory_settings& with);

  // Chooses the recompute with which the peak is at most so many bytes, each rank of a pipeline for
  // its own layers. Returns the peak; where none of those tried is so small, the least of theirs,
  // and nothing is chosen. Nothing after an interrupt of some rank.
  std::optional<std::int64_t> adapt(std::int64_t most);

  // The layers of the model that recompute a kind; all ranks call it.
  std::int64_t layers_with(velo_recompute_kind kind) const;
  // The recompute of each layer of this rank.
  const std::vector<layer_recompute>& recomputed() const { return recompute_; }

  void start(const stored_weights* from = nullptr);  // with its weights, or else fresh ones
  void resume(const checkpoint_reader& saved);       // refuses if the data has changed

  struct result {
    std::int64_t step;
    double loss, learning_rate, grad_norm;
    int interrupt = 0;  // of a rank, where steps are validated late
  };
  // Runs a step and returns its result; with post_validation that of the step before, if any.
  std::optional<result> step();
  // Waits for the last step with post_validation, and returns its result if that is new. Weights,
  // losses and state are final afterwards.
  std::optional<result> settle();

  std::int64_t steps_done() const { return steps_done_; }
  const std::vector<float>& losses() const { return losses_; }  // of each step, in nats
  // The choices of experts in the last step, at rank 0; nullptr for a model without experts, or
  // where steps do not wait for each other.
  const expert_loads* loads() const { return loads_.get(); }
  // Serve a rank that has all layers.
  class model& model() {
    return *model_;
  }
  class activations& activations() {
    return *batch_;
  }
  const class weights& weights() const { return weights_; }
  const training_windows& windows() const { return windows_; }
  const pipeline* stages() const { return pipeline_.get(); }  // nullptr: a whole model

  // The largest number of windows of a call of `nats`; the sum of their losses, as far as this rank
  // computes it.
  std::int64_t windows_at_once() const;
  double nats(const window* all, std::int64_t count);

  // The contents of a checkpoint, for rank 0 to write. With a sharded optimizer the other ranks
  // call `give`, which sends their parts.
  checkpoint state(const std::string& settings_json);
  static void give(const checkpoint& state);

  // The swappers; nullptr where nothing is swapped.
  const swapper* swapped_activations() const { return activation_swap_.get(); }
  const swapper* swapped_optimizer() const { return optimizer_swap_.get(); }

 private:
  void warm_up();
  // The peak of all ranks if each recomputes its layers so; all call it.
  std::int64_t peak_bytes(const std::vector<layer_recompute>& with);
  // The peak of this rank alone, by a dry run. The ranks that share layers, or all of a pipeline,
  // make the dry run together.
  std::int64_t peak_here(const std::vector<layer_recompute>& with);
  // The largest value among the ranks of this rank's stage. All ranks of the job call it.
  std::int64_t max_of_stage(std::int64_t mine) const;
  std::int64_t peak_with(std::int64_t of_a_step);
  void swap_state_out();
  void swap_state_in();
  std::int64_t windows_here() const { return values_.data.batch / rank_.copies(); }
  void write_batch(std::int64_t micro_batch, class activations& into);
  std::int64_t write_windows(const window* all, std::int64_t count, class activations& into);
  void hand_over(class activations& into) const;
  void copy_symbols(const held_rows& own, const std::vector<held_rows>& along_y,
                    class activations& into) const;
  double targets_of_micro_batch() const;
  void write_gradients();
  static void give(const std::vector<named_tensor>& all);
  double micro_batches();
  double pipelined();
  result waited();
  std::optional<result> known_result(const std::optional<post_validation::result>& of);
  void refresh(const data_parallel* gathered = nullptr);
  std::vector<named_tensor> training_files(std::int64_t steps);

  const settings& values_;
  member& rank_;
  run_memory& memory_;
  const corpus& text_;
  velo::stream_ref stream_;
  std::unique_ptr<swapper> activation_swap_, optimizer_swap_;  // or nullptr
  std::unique_ptr<stage_plan> plan_;                           // of a model in stages
  class weights weights_;
  std::shared_ptr<const model_parallel> parallel_;
  std::unique_ptr<data_parallel> data_parallel_;  // with other ranks of these weights
  bool sharded() const { return values_.run.zero && rank_.is_data_parallel(); }
  // The whole model, or this rank's stages.
  std::optional<class model> model_;
  std::optional<class activations> batch_;
  std::unique_ptr<post_validation> late_;  // or nullptr
  std::unique_ptr<pipeline> pipeline_;
  optimizer optimizer_;
  std::vector<range> counted_;  // in the gradients' norm
  training_windows windows_;
  window_writer writer_;
  std::vector<layer_recompute> recompute_;
  bool warm_ = false, settled_ = true;
  std::int64_t steps_done_ = 0;
  std::vector<float> losses_;
  std::unique_ptr<parity_trace> trace_;
  std::unique_ptr<step_choices> choices_;  // or nullptr
  std::unique_ptr<expert_loads> loads_;    // or nullptr
};

}  // namespace decoder
