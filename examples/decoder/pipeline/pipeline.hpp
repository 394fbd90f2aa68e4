// The stages of a rank, and their micro-batches in flight.
//
// velo's executor runs the rank's part of the schedule and calls back for each action; tensors
// between stages are messages of the copy's group. A micro-batch at a stage, or a split of its
// sequences, has activations of its own from its F to its B or W; they come from a set as large as
// the schedule needs at one time. The splits of a micro-batch share its keys and values.
// Gradients add up in the order of the schedule, so a step has the bits of every other with this
// schedule, and up to rounding those of one rank.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "examples/decoder/memory/swapper.hpp"
#include "examples/decoder/optimizer/post_validation.hpp"
#include "examples/decoder/pipeline/split_sequences.hpp"
#include "examples/decoder/pipeline/stage_plan.hpp"
#include "examples/decoder/ranks/member.hpp"

namespace decoder {

class pipeline {
 public:
  // The objects that serve a pipeline beside its rank and weights. Each may be nullptr, and
  // outlives the pipeline.
  struct helpers {
    const data_parallel* reducer;  // reduces finished gradients
    post_validation* late;         // updates the weights at the end of `train`
    swapper* swap;                 // holds activations between their passes
  };
  // Serves a rank that is split into stages, whose layers `parallel` shares. All must outlive the
  // pipeline.
  pipeline(member& rank, const settings& values, const stage_plan& plan, const weights& weights,
           const std::shared_ptr<const model_parallel>& parallel, const helpers& by);
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  void refresh(const data_parallel* gathered);
  void complete();  // of all stages

  // Writes the symbols of a micro-batch of the step, or of the split that `into` is for, and
  // returns its number of sequences.
  using source = std::function<std::int64_t(std::int64_t microbatch, activations& into)>;

  // Runs a step of all ranks of the copy; adds to the weights' gradients. Returns the sum of the
  // mean losses of the micro-batches whose loss this rank computes.
  double train(const source& from);
  // Waits until the update of the last step is final; all ranks call it.
  void settle();
  // Computes the losses alone, summed over targets. Micro-batches may be empty.
  double score(const source& from);

  // Runs the first layer of each stage once (model::warm_up).
  void warm_up();
  // The recompute of this rank's layers, stage by stage: each stage applies the settings to its
  // own, or the rank to those of all its stages.
  std::vector<layer_recompute> recompute_by(const memory_settings& with) const;
  void recompute(const std::vector<layer_recompute>& with);
  // The costs of recompute in the first layer of the rank, which all ranks of a stage measure; 0
  // where it has none.
  std::vector<recompute_cost> measure(bool keeps_middle);
  // The lifetimes of this rank's buffers in a step with this recompute, received messages among
  // them, by the same code on tensors without rows; or, if it `scores`, in a validation. All ranks
  // of the copy call it.
  std::vector<lifetime> dry_run(const std::vector<layer_recompute>& with, bool scores = false);

  // The timeline of the last step on all ranks of the copy; all of them call it.
  velo::timeline timeline() const { return executor_.timeline(); }
  velo_executor_stats updates() const { return executor_.stats(); }
  // Holds what late weight gradients need, or nullptr.
  const swapper* late_inputs() const { return late_swap_ ? &*late_swap_ : nullptr; }

 private:
  struct stage {
    model part;
    int number;
    int left = 0;  // units of this step without their gradients so far
    std::vector<std::unique_ptr<activations>> made;
    std::vector<activations*> idle;
  };
  // A micro-batch or a split at a stage, and its outputs for other stages.
  struct cell {
    activations* work = nullptr;
    buffer output, gradient;
    buffer messages[2];  // in a dry run: the tensors that F and the backward pass received
    std::int64_t shape[2] = {};
    bool again = false;  // the schedule recomputes its activations: F saves the input alone
  };

  double run(const source& from, bool scores);
  stage& stage_of(const velo_action& a);
  cell& cell_of(const velo_action& a);
  std::unique_ptr<activations> make_work(const stage& at) const;
  std::unique_ptr<activations> make_trial(std::size_t stage);
  activations& take_work(const velo_action& a);
  std::string name_of(const velo_action& a) const;
  bool holds(int stage) const;
  bool pairs() const;
  buffer received(const velo_tensors& inputs, cell& of, int from, bool backward);
  void forward(velo_executor_call& call);
  bool begin_forward(const velo_action& a);
  void end_forward(velo_executor_call& call, const velo_action& a, bool has_rows);
  kept saved_by(const cell& of) const;
  void backward(velo_executor_call& call, bool deferred);
  void begin_backward(const velo_action& a, bool deferred);
  double gradient_scale() const;
  void fused(velo_executor_call& call);
  void weight(const velo_executor_call& call);
  void offload(activations& of);
  void reload(activations& of);
  void settle_offloaded();
  void settle_last_layer();
  void finish_gradients_in(const stage& at, activations& last) const;
  void finish(stage& at, cell& of);
  struct outputs {
    velo_tensor* tensors;
    std::int64_t& count;
  };
  void hand_out(const outputs& to, cell& of, const buffer& made) const;
  void released(const velo_action& a);
  template <void (pipeline::*method)(velo_executor_call&)>
  static velo_status call(void* user, velo_executor_call* call);
  void input(velo_executor_call& call) { backward(call, true); }
  void both(velo_executor_call& call) { backward(call, false); }
  void deferred_weight(velo_executor_call& call) { weight(call); }
  void other(velo_executor_call& call);
  void measure(void* state);
  void update(const velo_action& a, double factor, bool final);
  void roll_back();
  void forget();
  template <class Work>
  static velo_status guarded(void* user, Work&& work);
  velo_executor_validation validation();
  velo::executor make_executor(const velo::schedule& order, bool records,
                               const velo_executor_validation* validation);
  template <class Work>
  void carry_out(Work&& work);

  member& rank_;
  const settings& values_;
  const stage_plan& plan_;
  const std::shared_ptr<const model_parallel> parallel_;
  const data_parallel* reducer_;
  post_validation* late_;
  swapper* swap_;
  std::optional<swapper> late_swap_;  // holds the inputs of nanopipe's late W
  // The stage of the last forward pass, whose last layer may still be on its way out of memory; and
  // the activations of that pass.
  stage* swapping_ = nullptr;
  activations* swapped_work_ = nullptr;
  std::vector<activations*> offloaded_;  // of nanopipe's late W, whose copies may be under way
  velo::stream_ref stream_;
  velo_dtype type_;
  std::vector<stage> stages_;
  std::vector<layer_recompute> recompute_;
  std::vector<int> place_;   // index of a stage in stages_, by its number
  std::vector<cell> cells_;  // by stage of this rank and unit of the plan
  split_sequences splits_;
  velo::executor executor_, scorer_;  // scorer_: if executor_ updates weights

  // The current run.
  const source* from_ = nullptr;
  bool scores_ = false, is_dry_ = false;
  double loss_ = 0;
  std::exception_ptr failure_;
};

}  // namespace decoder
