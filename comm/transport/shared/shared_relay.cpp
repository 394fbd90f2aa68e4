// The counters of pieces.
#include "comm/transport/shared/shared_relay.hpp"

#include <cstring>

namespace velo::comm {

shared_relay::shared_relay(rank_context& self, const operation& op, core::execution& state,
                           bool one_process)
    : self_(self),
      round_(self, op, state),
      one_process_(one_process),
      steps_before_(self.steps),
      released_before_(self.area.state(self.rank).released.load(std::memory_order_relaxed)) {
  round_.post(&op.in, sizeof op.in);
}

void* shared_relay::peer_tensor(int rank) const noexcept {
  if (!one_process_) return nullptr;
  void* theirs;
  std::memcpy(&theirs, round_.payload(rank, sizeof theirs), sizeof theirs);
  return theirs;
}

void shared_relay::begin_access() {
  if (!one_process_) return;
  self_.area.state(self_.rank).in_peer_tensors.store(1, std::memory_order_seq_cst);
  if (!self_.area.has_fault()) return;
  end_access();
  raise_recorded_fault(self_);
}

void shared_relay::end_access() noexcept {
  if (one_process_)
    self_.area.state(self_.rank).in_peer_tensors.store(0, std::memory_order_release);
}

// The first call that needs the peers' posts awaits them, so that the first piece is computed while
// the peers arrive.
void shared_relay::wait_all() {
  if (!waited_) round_.wait_all();
  waited_ = true;
}

void shared_relay::wait_slot() {
  wait_all();
  if (posted_ >= slots) wait_released(posted_ - slots + 1);
}

void shared_relay::wait_readers() {
  wait_all();
  if (one_process_) wait_released(posted_);  // otherwise no rank reads outside the slots
}

void shared_relay::wait_released(std::uint64_t pieces) {
  for (int peer = 0; peer < round_.size; ++peer)
    round_.wait(peer, &shared_round::released_by, released_before_ + pieces);
}

void shared_relay::post() noexcept {
  ++posted_;
  self_.area.post(self_.rank, self_.area.state(self_.rank).steps, ++self_.steps);
}

void shared_relay::wait_piece() {
  wait_all();
  for (int peer = 0; peer < round_.size; ++peer)
    round_.wait(peer, &shared_round::steps_of, steps_before_ + released_ + 1);
}

void shared_relay::release() noexcept {
  ++released_;
  self_.area.post(self_.rank, self_.area.state(self_.rank).released, released_before_ + released_);
}

void shared_relay::finish() noexcept {
  self_.area.post(self_.rank, self_.area.state(self_.rank).steps, ++self_.steps);
  self_.area.state(self_.rank).done.store(self_.operations, std::memory_order_release);
}

}  // namespace velo::comm
