// Waiting for peers in one operation of a group in shared memory: for their mailbox, their steps or
// the pieces they released. Peers' terms are compared with this rank's.
//
// A rank that needs nothing from its peers may return before they have posted (defer_wait). Its
// next operation, or its destruction of the group, then waits for them and compares their terms, so
// that every rank checks every operation. Invariant: when a rank posts to operation n, all peers
// have posted to operation n - 2 and finished operation n - 3, so no rank reads the one of its four
// mailboxes that it writes. Cost: a cache line from each peer.
#pragma once

#include "comm/transport/shared/rank_context.hpp"

namespace velo::comm {

class peer_wait {
 public:
  // of: the terms of this rank's operation, which must outlive this object.
  peer_wait(rank_context& self, std::uint64_t sequence, const comm::terms& of) noexcept
      : rank(self.rank), size(self.area.ranks()), self_(self), sequence_(sequence), terms_(of) {}

  const int rank, size;

  // Each operation calls one of these after this rank's post. Both throw PEER.
  void wait_all();
  void defer_wait();

 protected:
  mailbox& box(int of) const noexcept { return self_.area.box(of, sequence_); }

  // A word of a peer that this rank waits for.
  using word = std::atomic<std::uint64_t>& (peer_wait::*)(int of) const noexcept;
  std::atomic<std::uint64_t>& posted_by(int of) const noexcept { return box(of).sequence; }
  std::atomic<std::uint64_t>& steps_of(int of) const noexcept { return self_.area.state(of).steps; }
  std::atomic<std::uint64_t>& released_by(int of) const noexcept {
    return self_.area.state(of).released;
  }
  void wait(int peer, word by, std::uint64_t wanted) {
    if ((this->*by)(peer).load(std::memory_order_acquire) < wanted) wait_slowly(peer, by, wanted);
  }

  fault fault_now() const;

  rank_context& self_;
  const std::uint64_t sequence_;

 private:
  void wait_slowly(int peer, word by, std::uint64_t wanted);
  rank_set late_ranks(word by, std::uint64_t wanted) const noexcept;
  void blame_signatures(fault& why) const noexcept;

  const comm::terms& terms_;
};

// Waits for the peers of a deferred operation, if there is one. Throws PEER.
void wait_deferred(rank_context& self);

}  // namespace velo::comm
