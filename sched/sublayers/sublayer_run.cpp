// Starts steps, orders both streams, and ends a run that fails.
#include "sched/sublayers/sublayer_run.hpp"

#include <algorithm>

#include "core/handle/host_call.hpp"
#include "core/handle/record.hpp"
#include "core/handle/status.hpp"
#include "core/host/clock.hpp"
#include "core/index.hpp"

namespace velo::sched {

using core::at;
using core::text;

namespace {

// Notes the time at which a stream gets to it.
struct time_mark final : core::work {
  explicit time_mark(std::int64_t* to) : work(core::demand::waits), time(to) {
    function = "velo_sublayers_run";
  }
  void run(core::execution&) override { *time = core::now_ns(); }

  std::int64_t* const time;
};

// Waits until a stream is done, whether its work failed or not.
void drain(core::stream& on) {
  try {
    on.synchronize();
  } catch (...) {
    // The first failure is the one to report.
  }
}

}  // namespace

sublayer_run::sublayer_run(core::stream& compute, core::stream& messages, const sublayer_plan& plan,
                           const velo_sublayers_run_desc& desc)
    : compute_(compute),
      messages_(messages),
      plan_(plan),
      desc_(desc),
      waits_for_(plan.steps().size(), none),
      records_(plan.steps().size(), nullptr) {
  if (crosses()) find_events();
}

void sublayer_run::find_events() {
  const auto& steps = plan_.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const std::int64_t need : plan_.needs_of(static_cast<std::int64_t>(i)))
      if (steps[at(need)].message != steps[i].message)
        waits_for_[i] = std::max(waits_for_[i], need);
    if (waits_for_[i] == none) continue;
    core::event*& recorded = records_[at(waits_for_[i])];
    if (recorded == nullptr) recorded = &events_.emplace_back(compute_.owner());
  }
}

void sublayer_run::carry_out() {
  const auto& steps = plan_.steps();
  for (std::size_t i = 0; desc_.spans != nullptr && i < steps.size(); ++i)
    desc_.spans[i] = {-1, -1};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    try {
      start(i);
    } catch (...) {
      end_early(core::current_failure(), steps[i]);
    }
  }
  if (!steps.empty()) finish(steps.back());
}

void sublayer_run::start(std::size_t i) {
  const velo_sublayer_step& step = plan_.steps()[i];
  core::stream& on = stream_of(step);
  require_working();
  if (waits_for_[i] > waited_[step.message]) {
    on.wait(*records_[at(waits_for_[i])]);
    waited_[step.message] = waits_for_[i];
    require_working();
  }
  velo_sublayer_span* const span = desc_.spans == nullptr ? nullptr : desc_.spans + i;
  if (span != nullptr) mark(on, &span->begin);
  call(step, on);
  if (span != nullptr) mark(on, &span->end);
  if (records_[i] != nullptr) on.record(*records_[i]);
}

void sublayer_run::call(const velo_sublayer_step& step, core::stream& on) const {
  const auto function = step.message != 0 ? desc_.message : desc_.compute;
  const char* const field = step.message != 0 ? "desc.message" : "desc.compute";
  const text caller("%s of layer %d, slice %d", sublayer_name(step.kind), step.layer, step.slice);
  const std::uint32_t before = core::records_written();
  velo_status status = VELO_OK;
  try {
    status = function(desc_.user, core::handle_of(on), &step);
  } catch (...) {
    core::fail_foreign(field, caller.buffer);
  }
  if (status != VELO_OK) core::fail_returned(field, status, caller.buffer, before);
}

void sublayer_run::mark(core::stream& on, std::int64_t* time) const {
  if (on.is_inline())
    *time = core::now_ns();
  else
    on.enqueue(on.make<time_mark>(time));
}

// Throws the failure of work that either stream has run.
void sublayer_run::require_working() const {
  for (const core::stream* on : {&compute_, &messages_}) static_cast<void>(on->idle());
}

// Waits for both streams; that of messages may be the only one whose work failed.
void sublayer_run::finish(const velo_sublayer_step& last) {
  try {
    compute_.synchronize();
    messages_.synchronize();
  } catch (...) {
    end_early(core::current_failure(), last);
  }
}

void sublayer_run::end_early(const core::failure& why, const velo_sublayer_step& step) const {
  if (desc_.failed != nullptr) {
    try {
      desc_.failed(desc_.user, &step, why.code);
    } catch (...) {
      // As in drain.
    }
  }
  drain(compute_);
  drain(messages_);
  throw why;
}

}  // namespace velo::sched
