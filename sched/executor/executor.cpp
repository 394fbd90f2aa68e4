// Runs a row: waits for an action's inputs, calls the host, and delivers the results.
#include "sched/executor/executor.hpp"

#include <utility>

#include "core/handle/host_call.hpp"
#include "core/handle/inside.hpp"
#include "core/handle/record.hpp"
#include "core/handle/status.hpp"
#include "core/host/clock.hpp"
#include "core/index.hpp"
#include "sched/executor/group_link.hpp"
#include "sched/executor/mailbox.hpp"
#include "sched/simulate/lower.hpp"

namespace velo::sched {

using core::fail;
using core::now_ns;
using core::text;

namespace {

// Adds the sends and receives that a blocking link needs, unless some rank's row lists its own. All
// ranks must decide the same, so the decision depends on the schedule instead of their rows.
std::shared_ptr<const schedule> fit(std::shared_ptr<const schedule> pipeline,
                                    const velo_link& link) {
  const bool sends = pipeline->has(set_of(VELO_ACTION_SEND_F) | set_of(VELO_ACTION_SEND_B));
  if ((link.flags & VELO_LINK_WAITS) == 0 || sends) return pipeline;
  return std::make_shared<const schedule>(lower(*pipeline, link.start_send != nullptr));
}

// Sends are started if the row lists them and the link's sends may block.
bool starts_sends(const schedule& pipeline, const velo_link& link, std::int32_t rank) {
  return link.start_send != nullptr && (link.flags & VELO_LINK_WAITS) != 0 &&
         says_sends(pipeline, rank);
}

}  // namespace

executor::executor(core::context& owner, std::shared_ptr<const schedule> pipeline,
                   const velo_executor_desc& desc, const velo_link& link,
                   const velo_executor_validation* validation)
    : owner_(owner),
      schedule_(fit(std::move(pipeline), link)),
      shape_(schedule_->sizes()),
      desc_(desc),
      channel_(link, starts_sends(*schedule_, link, desc.rank), owner.memory()) {
  chunk_of_.assign(static_cast<std::size_t>(shape_.stages), -1);
  std::int32_t chunks = 0;
  for (const std::int32_t stage : schedule_->stages_of(desc_.rank))
    chunk_of_[core::at(stage)] = chunks++;
  units_.resize(static_cast<std::size_t>(chunks) * static_cast<std::size_t>(units()));
  row_sends_ = says_sends(*schedule_, desc_.rank);
  require_functions();
  if (validation != nullptr)
    validation_ =
        std::make_unique<step_validation>(*validation, desc_.user, *schedule_, desc_.rank);
}

executor::~executor() {
  forget_all();
}

void executor::require_functions() {
  const struct {
    velo_action_kind kind;
    bool given;
    const char* field;
  } needed[] = {{VELO_ACTION_F, desc_.forward != nullptr, "desc.forward"},
                {VELO_ACTION_I, desc_.input != nullptr, "desc.input"},
                {VELO_ACTION_W, desc_.weight != nullptr, "desc.weight"},
                {VELO_ACTION_B, desc_.backward != nullptr, "desc.backward"},
                {VELO_ACTION_FB,
                 desc_.fused != nullptr || (desc_.forward != nullptr && desc_.backward != nullptr),
                 "desc.fused"}};
  for (row_reader row(*schedule_, desc_.rank); !row.done(); row.pass()) {
    const action& a = row.next();
    for (const auto& one : needed)
      if (one.kind == a.kind && !one.given)
        fail(VELO_ERR_NULL, one.field, text("a function: the row has %s", text_of(a).c_str()),
             "NULL");
  }
}

executor::unit_state& executor::unit_at(std::int32_t stage, std::int32_t unit) {
  const std::int32_t chunk = chunk_of_[core::at(stage)];
  return units_[core::at(chunk) * core::at(units()) + static_cast<std::size_t>(unit)];
}

void executor::require_idle() const {
  if (running_) fail(VELO_ERR_STATE, "executor", "one that does not run", "one that does");
}

void executor::cancel() noexcept {
  cancelled_.store(true, std::memory_order_relaxed);
  channel_.abort("cancelled");
}

void executor::note_link() const noexcept {
  for (const void* of : {group_of_link(channel_.link()), mailbox_of_link(channel_.link())})
    core::inside_scope::note(of, core::part::given);
}

void executor::run(core::stream& on) {
  guarded([&] {
    recorded_ = false;
    spans_.clear();
    if ((desc_.flags & VELO_EXECUTOR_RECORD) != 0)
      spans_.reserve(static_cast<std::size_t>(schedule_->length(desc_.rank)));
    const std::int64_t done = validation_ != nullptr && validation_->pending() ? run_ahead(on) : 0;
    run_actions(done, schedule_->length(desc_.rank), on);
    finish_sends();
    forget_all();  // nothing borrowed from the link outlives the run
  });
  recorded_ = (desc_.flags & VELO_EXECUTOR_RECORD) != 0;
}

void executor::settle(core::stream& on) {
  if (validation_ == nullptr)
    fail(VELO_ERR_STATE, "executor", "one that validates steps", "one that does not");
  guarded([&] {
    if (!validation_->pending()) return;
    require_going_on();
    validation_->settle(on, channel_);
    if (!on.is_inline()) on.synchronize();
  });
}

const velo_executor_stats& executor::stats() const {
  static constexpr velo_executor_stats none = VELO_EXECUTOR_STATS_INIT;
  require_idle();
  return validation_ == nullptr ? none : validation_->stats();
}

// Runs `work`. A failure also fails the other ranks.
template <class Work>
void executor::guarded(Work&& work) {
  require_idle();
  if (failed_) fail(VELO_ERR_STATE, "executor", "one that has not failed", "one that has");
  running_ = true;
  try {
    work();
  } catch (...) {
    const core::failure why = core::current_failure();
    running_ = false;
    if (shape_.ranks > 1) {  // messages under way are lost
      failed_ = true;
      channel_.abort(text("%s: expected %s, got %s", why.argument, why.expected, why.got));
    }
    forget_all();  // after abort, since until then the link may read started sends
    throw why;
  }
  running_ = false;
}

// Runs the forwards that precede the result of the previous step, then settles that step. Returns
// how many actions of the row are done; 0 if the step was wrong.
std::int64_t executor::run_ahead(core::stream& on) {
  const ahead& row = validation_->before_it();
  run_actions(0, row.cut, on);
  for (const ahead::input& each : row.arriving)
    await_input(make_action(VELO_ACTION_F, each.stage, each.unit), each.stage, each.unit);
  finish_sends();
  require_going_on();
  if (!validation_->settle(on, channel_)) return row.cut;
  validation_->forget();
  forget_all();
  spans_.clear();
  return 0;
}

void executor::require_going_on() {
  if (!cancelled_.exchange(false, std::memory_order_relaxed)) return;
  core::failure ended;
  ended.code = VELO_ERR_PEER;
  ended.rank = desc_.rank;
  core::copy_text(ended.argument, sizeof ended.argument, "executor");
  core::copy_text(ended.expected, sizeof ended.expected, "a run to its end");
  core::copy_text(ended.got, sizeof ended.got, "a call of velo_executor_cancel");
  throw ended;
}

void executor::run_actions(std::int64_t first, std::int64_t last, core::stream& on) {
  for (row_reader row(*schedule_, desc_.rank, first); row.index() < last; row.pass()) {
    if (cancelled_.load(std::memory_order_relaxed)) require_going_on();
    step(row.next(), on);
  }
  if (!on.is_inline()) on.synchronize();
}

void executor::step(const action& a, core::stream& on) {
  const bool records = (desc_.flags & VELO_EXECUTOR_RECORD) != 0;
  std::int64_t begin = 0;
  if (!leaving_.empty() && !communicates(a.kind)) finish_sends();
  if (a.kind == VELO_ACTION_RECV_F || a.kind == VELO_ACTION_RECV_B) {
    begin = records ? now_ns() : 0;
    prepare(a);
  } else {
    prepare(a);
    begin = records ? now_ns() : 0;
    perform(a, on);
  }
  if (!records) return;
  if (!on.is_inline()) on.synchronize();
  spans_.push_back({begin, now_ns()});
}

// Waits for an action's inputs, or for the message that it receives.
void executor::prepare(const action& a) {
  switch (a.kind) {
    case VELO_ACTION_F:
    case VELO_ACTION_RECV_F:
      return await_input(a, a.stage, a.microbatch);
    case VELO_ACTION_I:
    case VELO_ACTION_B:
    case VELO_ACTION_RECV_B:
      return await_gradient(a, a.stage, a.microbatch);
    case VELO_ACTION_FB:
      await_input(a, a.stage, a.microbatch);
      return await_gradient(a, a.other_stage, a.other_microbatch);
    default:
      return;
  }
}

void executor::perform(const action& a, core::stream& on) {
  switch (a.kind) {
    case VELO_ACTION_F:
      return forward(a, on);
    case VELO_ACTION_I:
      return backward(desc_.input, "desc.input", a, on);
    case VELO_ACTION_B:
      backward(desc_.backward, "desc.backward", a, on);
      return clear(unit_at(a.stage, a.microbatch), on);
    case VELO_ACTION_W:
      call(desc_.weight, "desc.weight", a, {}, {}, on, nullptr, nullptr);
      return clear(unit_at(a.stage, a.microbatch), on);
    case VELO_ACTION_FB:
      return fused_pair(a, on);
    case VELO_ACTION_SEND_F:
      return send(direction::forward, a.stage, a.microbatch, on);
    case VELO_ACTION_SEND_B:
      return send(direction::backward, a.stage, a.microbatch, on);
    case VELO_ACTION_OPTIMIZER:
      if (validation_ != nullptr) return validation_->update(a, on, channel_);
      [[fallthrough]];
    default:
      if (desc_.other != nullptr) call(desc_.other, "desc.other", a, {}, {}, on, nullptr, nullptr);
  }
}

void executor::forward(const action& a, core::stream& on) {
  if (validation_ != nullptr && forward_is_void(a, on)) return;
  outputs out;
  call(desc_.forward, "desc.forward", a, view(unit_at(a.stage, a.microbatch).input), {}, on, &out,
       nullptr);
  pass_on_result(a, direction::forward, a.stage, a.microbatch, out, on);
}

// Whether a forward is void, because the previous step is not done or the input is void. A void
// message then goes to the next stage.
bool executor::forward_is_void(const action& a, core::stream& on) {
  unit_state& of = unit_at(a.stage, a.microbatch);
  if (!of.void_input && !validation_->waits()) return false;
  of.void_output = true;
  pass_on_result(a, direction::forward, a.stage, a.microbatch, outputs{}, on);
  return true;
}

void executor::backward(velo_executor_fn function, const char* field, const action& a,
                        core::stream& on) {
  outputs out;
  call(function, field, a, view(unit_at(a.stage, a.microbatch).gradient), {}, on, &out, nullptr);
  pass_on_result(a, direction::backward, a.stage, a.microbatch, out, on);
}

void executor::fused_pair(const action& a, core::stream& on) {
  const action f = make_action(VELO_ACTION_F, a.stage, a.microbatch);
  const action b = make_action(VELO_ACTION_B, a.other_stage, a.other_microbatch);
  unit_state& of_backward = unit_at(b.stage, b.microbatch);
  if (desc_.fused == nullptr) {
    forward(f, on);
    backward(desc_.backward, "desc.backward", b, on);
    return clear(of_backward, on);
  }
  outputs out, other_out;
  call(desc_.fused, "desc.fused", a, view(unit_at(a.stage, a.microbatch).input),
       view(of_backward.gradient), on, &out, &other_out);
  pass_on_result(f, direction::forward, f.stage, f.microbatch, out, on);
  pass_on_result(b, direction::backward, b.stage, b.microbatch, other_out, on);
  clear(of_backward, on);
}

void executor::call(velo_executor_fn function, const char* field, const action& a,
                    velo_tensors inputs, velo_tensors other_inputs, core::stream& on, outputs* out,
                    outputs* other_out) {
  velo_executor_call request = VELO_EXECUTOR_CALL_INIT;
  request.rank = desc_.rank;
  request.action = a;
  request.stream = core::handle_of(on);
  request.inputs = inputs;
  request.other_inputs = other_inputs;
  if (out != nullptr) request.outputs = out->tensors;
  if (other_out != nullptr) request.other_outputs = other_out->tensors;
  const auto caller = [&] { return text("%s of rank %d", text_of(a).c_str(), desc_.rank); };
  const std::uint32_t before = core::records_written();
  velo_status status = VELO_OK;
  try {
    status = function(desc_.user, &request);
  } catch (...) {
    core::fail_foreign(field, caller());
  }
  if (status != VELO_OK) core::fail_returned(field, status, caller(), before);
  if (out != nullptr) out->take(request.output_count, "call.output_count");
  if (other_out != nullptr) other_out->take(request.other_output_count, "call.other_output_count");
}

void executor::outputs::take(std::int64_t given, const char* named) {
  if (given < 0 || given > VELO_EXECUTOR_TENSORS)
    fail(VELO_ERR_FOREIGN, named, text("0 to %d", VELO_EXECUTOR_TENSORS), core::number(given));
  count = given;
  field = named;
}

// Refuses outputs that are filled in but not counted, and outputs that are counted but not filled
// in, since the receiving host would read tensors that do not exist.
void executor::outputs::require_all_counted() const {
  const auto is_filled_in = [](const velo_tensor& one) {
    return one.data != nullptr || one.shape != nullptr || one.dtype.bits != 0;
  };
  for (std::int64_t i = 0; i <= count && i < VELO_EXECUTOR_TENSORS; ++i) {
    if (is_filled_in(tensors[i]) == (i < count)) continue;
    fail(VELO_ERR_FOREIGN, field, "the number of outputs that are filled in",
         core::concat(count, ", with outputs[", i, "] ", i < count ? "not " : "", "filled in"));
  }
}

}  // namespace velo::sched
