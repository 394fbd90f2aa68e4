// What an executor's slots are given and what leaves them.
#include <utility>

#include "core/handle/host_call.hpp"
#include "sched/executor/executor.hpp"

namespace velo::sched {

using core::fail;
using core::text;

void executor::await_input(const action& a, std::int32_t stage, std::int32_t unit) {
  if (!shape_.begins_chain(stage)) await(a, stage - 1, slot_of(stage, unit).has_input);
}

void executor::await_gradient(const action& a, std::int32_t stage, std::int32_t unit) {
  if (!shape_.ends_chain(stage)) await(a, stage + 1, slot_of(stage, unit).has_gradient);
}

// Takes what the maker's rank sent until what is waited for is there.
void executor::await(const action& a, std::int32_t maker, const bool& there) {
  const std::int32_t from = schedule_->rank_of(maker);
  while (!there) {
    if (from == desc_.rank)
      fail(VELO_ERR_STATE, "executor", text("a row that makes what %s needs", text_of(a).c_str()),
           text("nothing from stage %d before it", maker));
    parcel_ptr given;
    label of{};
    try {
      of = courier_.receive(from, given);
    } catch (...) {
      let_go(given);
      throw;
    }
    const std::int32_t stages = shape_.stages;
    if (of.stage < 0 || of.stage >= stages || of.unit < 0 || of.unit >= units() ||
        schedule_->rank_of(of.stage) != from) {
      let_go(given);
      fail(VELO_ERR_PEER, "link", "a message of the same schedule",
           text("stage %d, unit %d from rank %d", of.stage, of.unit, from));
    }
    deliver(of, std::move(given));
  }
}

// Into the slot that it is for: of the stage behind, or before.
void executor::deliver(const label& of, parcel_ptr given) {
  const bool is_forward = of.way == direction::forward;
  const std::int32_t stage = is_forward ? of.stage + 1 : of.stage - 1;
  const bool mine =
      stage >= 0 && stage < shape_.stages && chunk_of_[static_cast<std::size_t>(stage)] >= 0;
  slot* to = mine ? &slot_of(stage, of.unit) : nullptr;
  if (to == nullptr || (is_forward ? to->has_input : to->has_gradient)) {
    let_go(given);
    fail(VELO_ERR_PEER, "link", "what this rank needs, once",
         text("stage %d's, unit %d", of.stage, of.unit));
  }
  (is_forward ? to->input : to->gradient) = std::move(given);
  (is_forward ? to->has_input : to->has_gradient) = true;
  to->void_input |= of.is_void;
}

void executor::hand_on(const action& maker, direction way, std::int32_t stage, std::int32_t unit,
                       const made& out, core::stream& on) {
  const bool is_forward = way == direction::forward;
  if (is_forward ? shape_.ends_chain(stage) : shape_.begins_chain(stage)) return;
  out.require_all_counted();
  parcel_ptr mine = parcel_of_host(out.tensors, out.count, maker);
  const std::int32_t to = schedule_->rank_of(is_forward ? stage + 1 : stage - 1);
  slot& from = slot_of(stage, unit);
  if (to == desc_.rank) return deliver({way, stage, unit, from.void_output}, std::move(mine));
  (is_forward ? from.output : from.input_gradient) = std::move(mine);
  if (!row_sends_) send(way, stage, unit, on);
}

void executor::send(direction way, std::int32_t stage, std::int32_t unit, core::stream& on) {
  const bool is_forward = way == direction::forward;
  slot& from = slot_of(stage, unit);
  parcel_ptr& what = is_forward ? from.output : from.input_gradient;
  if (what != nullptr && !on.is_inline()) on.synchronize();
  courier_.send(schedule_->rank_of(is_forward ? stage + 1 : stage - 1),
                {way, stage, unit, from.void_output}, what.get());
  if (courier_.starts())
    leaving_.push_back(std::move(what));
  else
    let_go(what);
}

void executor::finish_sends() {
  if (leaving_.empty()) return;
  courier_.finish();
  for (parcel_ptr& what : leaving_) let_go(what);
  leaving_.clear();
}

void executor::let_go(parcel_ptr& what) {
  if (what == nullptr) return;
  if (what->received) {
    courier_.give_back(*what);
  } else if (desc_.released != nullptr) {
    try {
      desc_.released(desc_.user, &what->from);
    } catch (...) {
      core::fail_foreign("desc.released", "the host");
    }
  }
  what = nullptr;
}

// What the host queued may read its inputs still.
void executor::clear(slot& done, core::stream& on) {
  if (!on.is_inline() && (done.input != nullptr || done.gradient != nullptr)) on.synchronize();
  let_go(done.input);
  let_go(done.gradient);
  done.has_input = done.has_gradient = false;
}

// After a failure, of forwards that are void, and of what no B or W let go when a run ends: the
// host frees what is its own.
void executor::forget_all() noexcept {
  leaving_.clear();
  for (slot& one : slots_) {
    for (parcel_ptr* what : {&one.input, &one.gradient, &one.output, &one.input_gradient}) {
      if (*what != nullptr) courier_.give_back(**what);
      what->reset();
    }
    one.has_input = one.has_gradient = one.void_input = one.void_output = false;
  }
}

}  // namespace velo::sched
