// Runs one rank's part of a schedule: the object behind velo_executor.
//
// Every unit of each of the rank's stages has a unit_state: the messages that its forward and
// backward received, and those that they made and that are not yet sent. Actions fill and empty
// these states. A message from the link goes into the state that its header names, whichever
// message is awaited. A state is empty again after B or W, so memory follows the schedule's own
// peak. Cost beside the host's functions and the link: a constant for each action, measured by
// bench/bench_sched.
//
// If the link starts sends, the sends between two computing actions proceed while the row receives,
// and end before the next computing action.
//
// A run with step_validation begins with forwards that may turn out to be void; the row then begins
// again.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/handle/handle_kinds.hpp"
#include "core/stream/stream.hpp"
#include "sched/executor/stage_channel.hpp"
#include "sched/executor/step_validation.hpp"
#include "sched/simulate/timeline.hpp"
#include "velo/executor.h"

namespace velo::sched {

class executor {
 public:
  // Throws NULL for a function that the row needs and that desc lacks. validation may be null.
  executor(core::context& owner, std::shared_ptr<const schedule> pipeline,
           const velo_executor_desc& desc, const velo_link& link,
           const velo_executor_validation* validation);
  ~executor();
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  core::context& owner() const { return owner_; }
  void run(core::stream& on);
  void settle(core::stream& on);    // the last run's step; throws STATE if none is validated
  void cancel() noexcept;           // from any thread
  void note_link() const noexcept;  // marks velo's own link as used by the calling entry
  timeline gather();                // of all ranks; a collective call
  void require_idle() const;        // throws STATE while it runs
  const velo_executor_stats& stats() const;

 private:
  struct unit_state {
    message_ptr input, gradient;         // received; null also for a message without tensors
    message_ptr output, input_gradient;  // made, and to be sent by a SEND
    bool has_input = false, has_gradient = false;
    bool void_input = false, void_output = false;
  };
  struct outputs {  // outputs of a function of the host
    velo_tensor tensors[VELO_EXECUTOR_TENSORS] = {};
    velo_tensor
        beyond[VELO_EXECUTOR_TENSORS];  // room for a host that fills in too many, which is refused
    std::int64_t count = 0;
    const char* field = nullptr;  // the member that states the count
    void take(std::int64_t given, const char* named);
    void require_all_counted() const;
  };

  void require_functions();
  std::int32_t units() const { return shape_.units(); }
  unit_state& unit_at(std::int32_t stage, std::int32_t unit);
  static velo_tensors view(const message_ptr& of) {
    return of == nullptr ? velo_tensors{nullptr, 0} : of->view();
  }

  template <class Work>
  void guarded(Work&& work);
  std::int64_t run_ahead(core::stream& on);
  void run_actions(std::int64_t first, std::int64_t last, core::stream& on);
  void require_going_on();
  void step(const action& a, core::stream& on);
  void prepare(const action& a);
  void perform(const action& a, core::stream& on);
  void forward(const action& a, core::stream& on);
  void backward(velo_executor_fn function, const char* field, const action& a, core::stream& on);
  bool forward_is_void(const action& a, core::stream& on);
  void fused_pair(const action& a, core::stream& on);
  void call(velo_executor_fn function, const char* field, const action& a, velo_tensors inputs,
            velo_tensors other_inputs, core::stream& on, outputs* out, outputs* other_out);

  // executor_messages.cpp
  void await_input(const action& a, std::int32_t stage, std::int32_t unit);
  void await_gradient(const action& a, std::int32_t stage, std::int32_t unit);
  void await(const action& a, std::int32_t maker, const bool& there);
  void deliver(const message_tag& of, message_ptr given);
  void pass_on_result(const action& maker, direction toward, std::int32_t stage, std::int32_t unit,
                      const outputs& out, core::stream& on);
  void send(direction toward, std::int32_t stage, std::int32_t unit, core::stream& on);
  void finish_sends();
  void clear(unit_state& done, core::stream& on);
  void release(message_ptr& body);
  void forget_all() noexcept;

  core::context& owner_;
  const std::shared_ptr<const schedule> schedule_;
  const shape& shape_;
  const velo_executor_desc desc_;
  stage_channel channel_;
  std::unique_ptr<step_validation> validation_;  // or nullptr
  std::vector<std::int32_t> chunk_of_;           // by stage; -1: on another rank
  std::vector<unit_state> units_;                // by chunk and unit
  std::vector<message_ptr> leaving_;  // started sends; null for a message without tensors
  bool row_sends_ = false;
  bool running_ = false, failed_ = false, recorded_ = false;
  std::atomic<bool> cancelled_{false};
  std::vector<span> spans_;  // of the last run, CLOCK_MONOTONIC
};

}  // namespace velo::sched

template <>
struct velo::core::handle_traits<velo::sched::executor> {
  using handle = velo_executor;
  static constexpr handle_kind& kind = kinds::executor;
};
