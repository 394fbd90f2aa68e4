// One rank's part of a schedule, carried out: what is behind velo_executor.
//
// For every stage of the rank and every unit there is a slot: what its F was given, what its
// backward was given, and what it made and others have not received. Actions fill and empty slots;
// what comes over the link goes into the slot that it is for, whichever slot is waited for. A slot
// is empty again when B or W is done, so memory follows the schedule's own peak. Cost beside the
// host's functions and the link: a constant for each action, which bench/bench_sched measures.
//
// Over a link that starts sends, what a row sends between two actions that compute is under way
// while it receives, and done before the next one.
//
// With step_validation a run begins with forwards that may turn out to be void; then the row begins
// anew.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/handle/handle_kinds.hpp"
#include "core/stream/stream.hpp"
#include "sched/executor/courier.hpp"
#include "sched/executor/step_validation.hpp"
#include "sched/simulate/timeline.hpp"
#include "velo/executor.h"

namespace velo::sched {

class executor {
 public:
  // Throws NULL for a function that the row needs and desc lacks. validation: may be null.
  executor(core::context& owner, std::shared_ptr<const schedule> what,
           const velo_executor_desc& desc, const velo_link& link,
           const velo_executor_validation* validation);
  ~executor();
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  core::context& owner() const { return owner_; }
  void run(core::stream& on);
  void settle(core::stream& on);  // the step of the last run; throws STATE where none are validated
  void cancel() noexcept;         // from any thread
  void note_link() const noexcept;  // velo's own: in use by the entry that calls
  timeline gather();                // of all ranks, which call it together
  void require_idle() const;        // throws STATE while it runs
  const velo_executor_stats& stats() const;

 private:
  struct slot {
    parcel_ptr input, gradient;         // given; null also where nothing is in them
    parcel_ptr output, input_gradient;  // made, to be sent by a SEND
    bool has_input = false, has_gradient = false;
    bool void_input = false, void_output = false;
  };
  struct made {  // by a function of the host
    velo_tensor tensors[VELO_EXECUTOR_TENSORS] = {};
    velo_tensor beyond[VELO_EXECUTOR_TENSORS];  // a host's that has more, which is refused
    std::int64_t count = 0;
    const char* field = nullptr;  // with the count
    void take(std::int64_t given, const char* named);
    void require_all_counted() const;
  };

  void require_functions();
  std::int32_t units() const { return shape_.units(); }
  slot& slot_of(std::int32_t stage, std::int32_t unit);
  static velo_tensors view(const parcel_ptr& of) {
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
  bool forward_in_vain(const action& a, core::stream& on);
  void fused_pair(const action& a, core::stream& on);
  void call(velo_executor_fn function, const char* field, const action& a, velo_tensors inputs,
            velo_tensors other_inputs, core::stream& on, made* out, made* other_out);

  // executor_slots.cpp
  void await_input(const action& a, std::int32_t stage, std::int32_t unit);
  void await_gradient(const action& a, std::int32_t stage, std::int32_t unit);
  void await(const action& a, std::int32_t maker, const bool& there);
  void deliver(const label& of, parcel_ptr given);
  void hand_on(const action& maker, direction way, std::int32_t stage, std::int32_t unit,
               const made& out, core::stream& on);
  void send(direction way, std::int32_t stage, std::int32_t unit, core::stream& on);
  void finish_sends();
  void clear(slot& done, core::stream& on);
  void let_go(parcel_ptr& what);
  void forget_all() noexcept;

  core::context& owner_;
  const std::shared_ptr<const schedule> schedule_;
  const shape& shape_;
  const velo_executor_desc desc_;
  courier courier_;
  std::unique_ptr<step_validation> validation_;  // or nullptr
  std::vector<std::int32_t> chunk_of_;           // by stage; -1: another rank's
  std::vector<slot> slots_;                      // by chunk and unit
  std::vector<parcel_ptr> leaving_;              // sends that were started; null: without tensors
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
