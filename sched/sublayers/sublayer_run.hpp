// A plan of sublayers carried out on two streams.
//
// Steps are started one after another on the calling thread. A step waits for those that it needs
// on the other stream by one event, that of the last of them: the others come before it there. Only
// steps that the other stream needs record an event, and each is recorded before anything waits for
// it; so after a failure both streams come to their end. Cost: an event and a wait for each step
// that crosses, two marks a step where times are kept.
#pragma once

#include <deque>
#include <vector>

#include "core/failure.hpp"
#include "core/stream/stream.hpp"
#include "sched/sublayers/sublayer_plan.hpp"

namespace velo::sched {

class sublayer_run {
 public:
  // All must outlive the run.
  sublayer_run(core::stream& compute, core::stream& messages, const sublayer_plan& plan,
               const velo_sublayers_run_desc& desc);
  // Throws the first failure, after both streams have done what is queued.
  void carry_out();

 private:
  core::stream& stream_of(const velo_sublayer_step& step) const {
    return step.message != 0 ? messages_ : compute_;
  }
  bool crosses() const { return &compute_ != &messages_; }
  void find_events();
  void start(std::size_t i);
  void call(const velo_sublayer_step& step, core::stream& on) const;
  void mark(core::stream& on, std::int64_t* time) const;
  void require_working() const;
  void finish(const velo_sublayer_step& last);
  [[noreturn]] void end_early(const core::failure& why, const velo_sublayer_step& step) const;

  core::stream &compute_, &messages_;
  const sublayer_plan& plan_;
  const velo_sublayers_run_desc& desc_;
  static constexpr std::int64_t none = -1;
  std::vector<std::int64_t> waits_for_;  // by step: the last one on the other stream that it needs
  std::vector<core::event*> records_;    // by step: nullptr: the other stream does not need it
  std::deque<core::event> events_;
  std::int64_t waited_[2] = {none, none};  // by stream: the last step that it has waited for
};

}  // namespace velo::sched
