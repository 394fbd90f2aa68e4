// Counting pieces (shared_relay.hpp).
#include "comm/transport/shared/shared_relay.hpp"

#include <cstring>

namespace velo::comm {

shared_relay::shared_relay(comm::place& at, const operation& what, core::execution& state,
                           bool one_process)
    : at_(at),
      meeting_(at, what, state),
      one_process_(one_process),
      steps_before_(at.steps),
      released_before_(at.area.state(at.rank).released.load(std::memory_order_relaxed)) {
  meeting_.arrive(&what.in, sizeof what.in);
}

void* shared_relay::tensor(int of) const noexcept {
  if (!one_process_) return nullptr;
  void* theirs;
  std::memcpy(&theirs, meeting_.payload(of, sizeof theirs), sizeof theirs);
  return theirs;
}

void shared_relay::touch() {
  if (!one_process_) return;
  at_.area.state(at_.rank).touching.store(1, std::memory_order_seq_cst);
  if (!at_.area.is_noted()) return;
  leave();
  raise_if_noted(at_);
}

void shared_relay::leave() noexcept {
  if (one_process_) at_.area.state(at_.rank).touching.store(0, std::memory_order_release);
}

// Late, so that what is computed first is computed while others arrive.
void shared_relay::meet() {
  if (!met_) meeting_.meet();
  met_ = true;
}

void shared_relay::await_place() {
  meet();
  if (shown_ >= places) await_released(shown_ - places + 1);
}

void shared_relay::await_readers() {
  meet();
  if (one_process_) await_released(shown_);  // else nobody reads what is not in a place
}

void shared_relay::await_released(std::uint64_t pieces) {
  for (int peer = 0; peer < meeting_.size; ++peer)
    meeting_.wait(peer, &meeting::released_by, released_before_ + pieces);
}

void shared_relay::show() noexcept {
  ++shown_;
  at_.area.post(at_.rank, at_.area.state(at_.rank).steps, ++at_.steps);
}

void shared_relay::await_piece() {
  meet();
  for (int peer = 0; peer < meeting_.size; ++peer)
    meeting_.wait(peer, &meeting::steps_of, steps_before_ + released_ + 1);
}

void shared_relay::release() noexcept {
  ++released_;
  at_.area.post(at_.rank, at_.area.state(at_.rank).released, released_before_ + released_);
}

void shared_relay::finish() noexcept {
  at_.area.post(at_.rank, at_.area.state(at_.rank).steps, ++at_.steps);
  at_.area.state(at_.rank).done.store(at_.met, std::memory_order_release);
}

}  // namespace velo::comm
