// Who has come to an operation of a group in shared memory, with which terms, and how far: all that
// a rank waits for.
//
// A rank to which the others have nothing to say may go on before they have come (leave). It owes a
// look at them, which its next operation takes once it has come there itself, or else its leaving
// the group: so every rank holds its terms against those of all, in every operation. Invariant: who
// comes to an operation knows that all came to the one before the last, and have ended those before
// that: of four mailboxes the one it writes is read by nobody. Cost: a line from each peer.
#pragma once

#include "comm/transport/shared/waiting.hpp"

namespace velo::comm {

class attendance {
 public:
  // of: those of this rank's operation; they stay where they are.
  attendance(place& at, std::uint64_t sequence, const comm::terms& of) noexcept
      : rank(at.rank), size(at.area.ranks()), at_(at), sequence_(sequence), terms_(of) {}

  const int rank, size;

  // Either, after this rank came. Throw PEER.
  void meet();
  void leave();

 protected:
  mailbox& box(int of) const noexcept { return at_.area.box(of, sequence_); }

  // What a rank is waited for by.
  using word = std::atomic<std::uint64_t>& (attendance::*)(int of) const noexcept;
  std::atomic<std::uint64_t>& arrival(int of) const noexcept { return box(of).sequence; }
  std::atomic<std::uint64_t>& steps_of(int of) const noexcept { return at_.area.state(of).steps; }
  std::atomic<std::uint64_t>& released_by(int of) const noexcept {
    return at_.area.state(of).released;
  }
  void wait(int peer, word by, std::uint64_t wanted) {
    if ((this->*by)(peer).load(std::memory_order_acquire) < wanted) wait_longer(peer, by, wanted);
  }

  fault fault_now() const;

  place& at_;
  const std::uint64_t sequence_;

 private:
  void wait_longer(int peer, word by, std::uint64_t wanted);
  rank_set late_ranks(word by, std::uint64_t wanted) const noexcept;
  void blame_signatures(fault& why) const noexcept;

  const comm::terms& terms_;
};

// The look that is owed, if any, at an earlier operation. Throws PEER.
void meet_earlier(place& at);

}  // namespace velo::comm
