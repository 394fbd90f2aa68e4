// The messages of an executor: receiving, delivering, sending and releasing them.
#include <utility>

#include "core/handle/host_call.hpp"
#include "core/index.hpp"
#include "sched/executor/executor.hpp"

namespace velo::sched {

using core::fail;
using core::text;

void executor::await_input(const action& a, std::int32_t stage, std::int32_t unit) {
  if (!shape_.begins_chain(stage)) await(a, stage - 1, unit_at(stage, unit).has_input);
}

void executor::await_gradient(const action& a, std::int32_t stage, std::int32_t unit) {
  if (!shape_.ends_chain(stage)) await(a, stage + 1, unit_at(stage, unit).has_gradient);
}

// Receives from the maker's rank until the awaited message has arrived.
void executor::await(const action& a, std::int32_t maker, const bool& there) {
  const std::int32_t from = schedule_->rank_of(maker);
  while (!there) {
    if (from == desc_.rank)
      fail(VELO_ERR_STATE, "executor", text("a row that makes what %s needs", text_of(a).c_str()),
           text("nothing from stage %d before it", maker));
    message_ptr given;
    message_tag of{};
    try {
      of = channel_.receive(from, given);
    } catch (...) {
      release(given);
      throw;
    }
    const std::int32_t stages = shape_.stages;
    if (of.stage < 0 || of.stage >= stages || of.unit < 0 || of.unit >= units() ||
        schedule_->rank_of(of.stage) != from) {
      release(given);
      fail(VELO_ERR_PEER, "link", "a message of the same schedule",
           text("stage %d, unit %d from rank %d", of.stage, of.unit, from));
    }
    deliver(of, std::move(given));
  }
}

// Stores a message in the state of its unit, on the next or the previous stage.
void executor::deliver(const message_tag& of, message_ptr given) {
  const bool is_forward = of.toward == direction::forward;
  const std::int32_t stage = is_forward ? of.stage + 1 : of.stage - 1;
  const bool mine = stage >= 0 && stage < shape_.stages && chunk_of_[core::at(stage)] >= 0;
  unit_state* to = mine ? &unit_at(stage, of.unit) : nullptr;
  if (to == nullptr || (is_forward ? to->has_input : to->has_gradient)) {
    release(given);
    fail(VELO_ERR_PEER, "link", "what this rank needs, once",
         text("stage %d's, unit %d", of.stage, of.unit));
  }
  (is_forward ? to->input : to->gradient) = std::move(given);
  (is_forward ? to->has_input : to->has_gradient) = true;
  to->void_input |= of.is_void;
}

void executor::pass_on_result(const action& maker, direction toward, std::int32_t stage,
                              std::int32_t unit, const outputs& out, core::stream& on) {
  const bool is_forward = toward == direction::forward;
  if (is_forward ? shape_.ends_chain(stage) : shape_.begins_chain(stage)) return;
  out.require_all_counted();
  message_ptr mine = message_of_host(out.tensors, out.count, maker);
  const std::int32_t to = schedule_->rank_of(is_forward ? stage + 1 : stage - 1);
  unit_state& from = unit_at(stage, unit);
  if (to == desc_.rank) return deliver({toward, stage, unit, from.void_output}, std::move(mine));
  (is_forward ? from.output : from.input_gradient) = std::move(mine);
  if (!row_sends_) send(toward, stage, unit, on);
}

void executor::send(direction toward, std::int32_t stage, std::int32_t unit, core::stream& on) {
  const bool is_forward = toward == direction::forward;
  unit_state& from = unit_at(stage, unit);
  message_ptr& body = is_forward ? from.output : from.input_gradient;
  if (body != nullptr && !on.is_inline()) on.synchronize();
  channel_.send(schedule_->rank_of(is_forward ? stage + 1 : stage - 1),
                {toward, stage, unit, from.void_output}, body.get());
  if (channel_.starts())
    leaving_.push_back(std::move(body));
  else
    release(body);
}

void executor::finish_sends() {
  if (leaving_.empty()) return;
  channel_.finish();
  for (message_ptr& body : leaving_) release(body);
  leaving_.clear();
}

void executor::release(message_ptr& body) {
  if (body == nullptr) return;
  if (body->received) {
    channel_.give_back(*body);
  } else if (desc_.released != nullptr) {
    try {
      desc_.released(desc_.user, &body->from);
    } catch (...) {
      core::fail_foreign("desc.released", "the host");
    }
  }
  body = nullptr;
}

// Work that the host has queued may still read the inputs, so the stream is synchronized first.
void executor::clear(unit_state& done, core::stream& on) {
  if (!on.is_inline() && (done.input != nullptr || done.gradient != nullptr)) on.synchronize();
  release(done.input);
  release(done.gradient);
  done.has_input = done.has_gradient = false;
}

// Drops all messages: after a failure, after void forwards, and at the end of a run those that no B
// or W has released. The host frees its own messages.
void executor::forget_all() noexcept {
  leaving_.clear();
  for (unit_state& one : units_) {
    for (message_ptr* body : {&one.input, &one.gradient, &one.output, &one.input_gradient}) {
      if (*body != nullptr) channel_.give_back(**body);
      body->reset();
    }
    one.has_input = one.has_gradient = one.void_input = one.void_output = false;
  }
}

}  // namespace velo::sched
