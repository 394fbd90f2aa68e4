// Counting pieces (shared_relay.hpp).
#include "comm/transport/shared_relay.hpp"

namespace velo::comm {

shared_relay::shared_relay(comm::place& at, const operation& what, core::execution& state)
    : at_(at),
      meeting_(at, what, state),
      room_(static_cast<std::int64_t>(at.area.slot_bytes()) * shared_area::slots / places / 64 *
            64),
      steps_before_(at.steps),
      released_before_(at.area.state(at.rank).released.load(std::memory_order_relaxed)) {
  meeting_.arrive();
}

// Late, so that what is computed first is computed while others arrive.
void shared_relay::meet() {
  if (!met_) meeting_.meet();
  met_ = true;
}

char* shared_relay::place_of(int rank, std::uint64_t number) const noexcept {
  return at_.area.slot(rank, 0) + static_cast<std::int64_t>(number % places) * room_;
}

void shared_relay::await_place() {
  meet();
  if (shown_ < places) return;
  const std::uint64_t wanted = released_before_ + shown_ - places + 1;
  for (int peer = 0; peer < meeting_.size; ++peer)
    meeting_.wait(peer, at_.area.state(peer).released, wanted);
}

void shared_relay::show() noexcept {
  ++shown_;
  at_.area.post(at_.rank, at_.area.state(at_.rank).steps, ++at_.steps);
}

void shared_relay::await_piece() {
  for (int peer = 0; peer < meeting_.size; ++peer)
    meeting_.wait(peer, at_.area.state(peer).steps, steps_before_ + released_ + 1);
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
