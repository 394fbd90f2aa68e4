// A meeting: one operation of a group in shared memory, as one rank carries it out.
//
// Every operation begins with all ranks there: arrive puts what this rank has to say, meet waits for
// the others and compares their terms. What does not fit a mailbox goes through the staging places in
// steps, which all ranks take together:
//
//     begin_step();  write mine();  post_step();  await_step();  read of(rank) of any;  end_step();
//
// What was posted before arrive is there for those that met, so a first step costs no wait of its
// own. Invariant: who begins a step knows that all have ended the step before the last, whose slot
// it writes again; all ranks take the same number of steps in an operation. Cost of a step: a line
// from each peer.
#pragma once

#include <vector>

#include "comm/transport/shared_area.hpp"
#include "core/context.hpp"

namespace velo::comm {

// What a rank keeps between meetings.
struct place {
  shared_area area;
  int rank;
  std::int64_t timeout_ns;
  std::int64_t spin_ns;              // 0: more ranks than processors
  peer_watch* watch;                 // nullptr: peers cannot be gone without a word
  std::vector<const void*> sources;  // a place for each rank
  std::uint64_t steps = 0;
};

class meeting {
 public:
  meeting(place& at, const operation& what, std::uint64_t sequence, core::execution& state);

  const operation& what;
  core::execution& state;
  const int rank, size;

  // For the sources of a reduction, one of each rank.
  const void** sources() const noexcept { return at_.sources.data(); }
  const reduction_kernels& kernels() const { return reductions_for(state.isa); }
  std::int64_t slot_bytes() const noexcept {
    return static_cast<std::int64_t>(at_.area.slot_bytes());
  }

  void arrive(const void* payload = nullptr, std::int64_t bytes = 0);  // at most mailbox::room
  void meet();                                                         // throws PEER
  const void* payload(int of) const noexcept { return box(of).payload; }

  void begin_step();
  char* mine() const noexcept { return at_.area.slot(rank, at_.steps); }
  const char* of(int peer) const noexcept { return at_.area.slot(peer, at_.steps); }
  void post_step();
  void await_step();
  void end_step() noexcept { ++at_.steps; }

 private:
  mailbox& box(int of) const noexcept { return at_.area.state(of).boxes[sequence_ % 2]; }
  void wait(int peer, std::atomic<std::uint64_t>& word, std::uint64_t wanted) {
    if (word.load(std::memory_order_acquire) < wanted) wait_longer(peer, word, wanted);
  }
  void wait_longer(int peer, std::atomic<std::uint64_t>& word, std::uint64_t wanted);
  void look_around(int peer, const std::atomic<std::uint64_t>& word, std::uint64_t wanted,
                   std::int64_t waited_ns);
  rank_set late_ranks() const noexcept;
  void compare();
  [[noreturn]] void end_group(fault::how kind, const rank_set& culprits, const char* cause = "");

  place& at_;
  const std::uint64_t sequence_;
};

// Collectives over meetings, one file each in comm/collective.
void barrier(meeting& m);
void all_reduce(meeting& m);

}  // namespace velo::comm
