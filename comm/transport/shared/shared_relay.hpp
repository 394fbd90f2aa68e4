// A relay in shared memory that is its own: four places for each rank, larger than those that
// collectives stage in, for what is multiplied and combined at once. They stay untouched, and take
// no memory, until the first relay.
//
// Who uses a peer's tensor says so before it looks whether the group has ended, and a rank whose
// operation fails ends the group before it looks who uses its tensors (shared_transport::settle):
// nobody uses them after the call.
//
// It begins and ends as any operation does: ranks meet with their terms before the first place is
// written, which says that nobody reads what came before; and a step posted when all is released
// lets the next operation begin. Pieces are counted by the steps, released ones by a counter of
// their own.
#pragma once

#include "comm/transport/shared/meeting.hpp"
#include "comm/transport/shared/relay.hpp"

namespace velo::comm {

class shared_relay final : public relay {
 public:
  // one_process: ranks are threads, which read each other's tensors.
  shared_relay(comm::place& at, const operation& what, core::execution& state, bool one_process);

  void* tensor(int of) const noexcept override;
  void await_place() override;
  void await_piece() override;
  void await_readers() override;
  char* place() noexcept override { return place_of(at_.rank, shown_); }
  void show() noexcept override;
  const char* piece(int of) const noexcept override { return place_of(of, released_); }
  void release() noexcept override;
  void finish() noexcept override;

 private:
  void touch() override;
  void leave() noexcept override;
  void meet();
  void await_released(std::uint64_t pieces);
  char* place_of(int rank, std::uint64_t number) const noexcept {
    return at_.area.relay_place(rank, number % places);
  }

  comm::place& at_;
  meeting meeting_;
  const bool one_process_;
  const std::uint64_t steps_before_, released_before_;
  bool met_ = false;
  std::uint64_t shown_ = 0, released_ = 0;
};

}  // namespace velo::comm
