// A relay in shared memory: the staging places of the ranks, each cut into four.
//
// It begins and ends as any operation does: ranks meet with their terms before the first place is
// written, which says that nobody reads what came before; and a step posted when all is released
// lets the next operation begin. Pieces are counted by the steps, released ones by a counter of
// their own.
#pragma once

#include "comm/transport/meeting.hpp"
#include "comm/transport/relay.hpp"

namespace velo::comm {

class shared_relay final : public relay {
 public:
  shared_relay(comm::place& at, const operation& what, core::execution& state);

  std::int64_t room() const noexcept override { return room_; }
  void await_place() override;
  void await_piece() override;
  char* place() noexcept override { return place_of(at_.rank, shown_); }
  void show() noexcept override;
  const char* piece(int of) const noexcept override { return place_of(of, released_); }
  void release() noexcept override;
  void finish() noexcept override;

 private:
  void meet();
  char* place_of(int rank, std::uint64_t number) const noexcept;

  comm::place& at_;
  meeting meeting_;
  const std::int64_t room_;
  const std::uint64_t steps_before_, released_before_;
  bool met_ = false;
  std::uint64_t shown_ = 0, released_ = 0;
};

}  // namespace velo::comm
