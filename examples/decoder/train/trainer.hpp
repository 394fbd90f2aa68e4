// One optimizer step after another, and all that is needed to go on from any of them.
//
// What a step does depends on its number, the settings and the state that `checkpoint` names, and
// on nothing else: a run that was stopped and resumed has the same bits as one that was not. A step
// of one rank allocates nothing but records of regions. Of several copies each takes its part of
// every micro-batch; the gradients' average has the same bits on all, and so have the weights. A
// copy whose stages are on several ranks is a pipeline (pipeline.hpp).
#pragma once

#include <optional>

#include "examples/decoder/checkpoint/checkpoint.hpp"
#include "examples/decoder/checkpoint/parity_trace.hpp"
#include "examples/decoder/data/corpus.hpp"
#include "examples/decoder/data/windows.hpp"
#include "examples/decoder/model/data_parallel.hpp"
#include "examples/decoder/model/model.hpp"
#include "examples/decoder/optimizer/optimizer.hpp"
#include "examples/decoder/pipeline/pipeline.hpp"
#include "examples/decoder/ranks/member.hpp"
#include "examples/decoder/train/validation.hpp"

namespace decoder {

class trainer {
 public:
  // Rank (split, where the model is to be in stages), text and settings must outlive the trainer. A
  // trace, if settings ask for one, begins with the first step.
  trainer(member& rank, const settings& values, const corpus& text);

  // The most bytes that the run's memory will hold if these settings rule it.
  std::int64_t promise(const memory_settings& with);

  // Chooses what to recompute so that the promise is at most so many bytes: false when nothing
  // does.
  bool adapt(std::int64_t most);

  const std::vector<layer_recompute>& recompute() const { return recompute_; }

  void start(const checkpoint_reader* from = nullptr);  // with its weights, or else fresh ones
  void resume(const checkpoint_reader& saved);          // refuses if the data has changed

  struct result {
    std::int64_t step;
    double loss, learning_rate, grad_norm;
    int interrupt = 0;  // of a rank, where steps are validated late
  };
  // What is known then: of this step, or with post_validation of the one before, if there was any.
  std::optional<result> step();
  // Waits for the last step with post_validation, and returns what was not known of it. Weights,
  // losses and state are to be asked for when it is done.
  std::optional<result> settle();

  std::int64_t steps_done() const { return steps_done_; }
  const std::vector<float>& losses() const { return losses_; }  // of each step, in nats
  // Of a rank that has a whole model.
  class model& model() {
    return *model_;
  }
  class activations& activations() {
    return *batch_;
  }
  const class weights& weights() const { return weights_; }
  const pipeline* stages() const { return pipeline_.get(); }  // nullptr: of one

  // The nats of windows, of at most so many, as far as this rank computes losses.
  std::int64_t windows_at_once() const;
  double nats(const window* all, std::int64_t count);

  // What a sharded optimizer has comes from all ranks while rank 0 writes: the others give theirs.
  checkpoint state(const std::string& settings_json);
  static void give(const checkpoint& state);

  // What was swapped; nullptr where nothing is.
  const swapper* swapped_activations() const { return activations_away_.get(); }
  const swapper* swapped_optimizer() const { return optimizer_away_.get(); }

 private:
  void warm_up();
  std::int64_t promise(const std::vector<layer_recompute>& with);
  void send_state_away();
  void bring_state_back();
  std::int64_t windows_here() const { return values_.data.batch / rank_.copies(); }
  void write_batch(std::int64_t micro_batch, class activations& into) const;
  double micro_batches();
  double pipelined();
  result waited();
  std::optional<result> told(const std::optional<post_validation::result>& of);
  void refresh(const exchange* gathered = nullptr);
  std::vector<named_tensor> training_files(std::int64_t steps);

  const settings& values_;
  member& rank_;
  run_memory& memory_;
  const corpus& text_;
  velo::stream_ref stream_;
  std::unique_ptr<swapper> activations_away_, optimizer_away_;  // or nullptr
  std::unique_ptr<stage_plan> plan_;                            // of a model in stages
  class weights weights_;
  std::unique_ptr<exchange> exchange_;  // of ranks that share weights
  bool sharded() const { return values_.run.zero && rank_.shares(); }
  // The whole model, or this rank's stages.
  std::optional<class model> model_;
  std::optional<class activations> batch_;
  std::unique_ptr<post_validation> late_;  // or nullptr
  std::unique_ptr<pipeline> pipeline_;
  optimizer optimizer_;
  windows windows_;
  std::vector<layer_recompute> recompute_;
  bool warm_ = false, settled_ = true;
  std::int64_t steps_done_ = 0;
  std::vector<float> losses_;
  std::unique_ptr<trace> trace_;
};

}  // namespace decoder
