// A relay in shared memory. Each rank has four slots for pieces, larger than its staging slots. The
// slots stay untouched, and take no memory, until the first relay.
//
// A rank sets a flag before it checks whether the group has ended and uses a peer's tensor. A rank
// whose operation fails ends the group and then waits for these flags (shared_transport::settle),
// so no peer uses its tensors after its call.
//
// A relay begins and ends as any operation does. All ranks post their terms before the first slot
// is written, so no rank reads older contents. A step that is posted after the last release lets
// the next operation begin. The step counter counts posted pieces; a separate counter counts
// released ones.
#pragma once

#include "comm/transport/shared/relay.hpp"
#include "comm/transport/shared/shared_round.hpp"

namespace velo::comm {

class shared_relay final : public relay {
 public:
  // one_process: ranks are threads, which read each other's tensors.
  shared_relay(rank_context& self, const operation& op, core::execution& state, bool one_process);

  void* peer_tensor(int rank) const noexcept override;
  void wait_slot() override;
  void wait_piece() override;
  void wait_readers() override;
  char* slot() noexcept override { return slot_of(self_.rank, posted_); }
  void post() noexcept override;
  const char* piece(int rank) const noexcept override { return slot_of(rank, released_); }
  void release() noexcept override;
  void finish() noexcept override;

 private:
  void begin_access() override;
  void end_access() noexcept override;
  void wait_all();
  void wait_released(std::uint64_t pieces);
  char* slot_of(int rank, std::uint64_t number) const noexcept {
    return self_.area.relay_slot(rank, number % slots);
  }

  rank_context& self_;
  shared_round round_;
  const bool one_process_;
  const std::uint64_t steps_before_, released_before_;
  bool waited_ = false;  // for all ranks
  std::uint64_t posted_ = 0, released_ = 0;
};

}  // namespace velo::comm
