// A meeting: one operation of a group in shared memory, as one rank carries it out.
//
// Every operation begins with all ranks there: arrive puts what this rank has to say, meet waits
// for the others and compares their terms. What does not fit a mailbox goes through the staging
// places in steps, which all ranks take together: in each a rank writes mine(), and reads of(rank)
// of any. The first step is written before the ranks meet, which says that it is: it costs no wait
// of its own. Invariant: who begins a step knows that all have ended the step before the last,
// whose slot it writes again; all ranks take the same number of steps in an operation. A rank that
// may write through the cache (peer_writer.hpp) moves its slots on with each step, and says so when
// the ranks meet. Cost of a step: a line from each peer.
//
// Where ranks lend memory (windows.hpp) and all tensors of an operation lie in it, they are read
// there: ranks meet with where they lie, and pass when they have read. A rank whose tensor lies
// elsewhere has all take the steps, which then cost one wait more.
#pragma once

#include <algorithm>

#include "comm/transport/shared/attendance.hpp"
#include "core/context.hpp"
#include "core/round_up.hpp"

namespace velo::comm {

class meeting : public attendance {
 public:
  static constexpr std::int64_t least_in_place = 16 << 10;  // less is staged while ranks come

  meeting(place& at, const operation& what, core::execution& state);

  const operation& what;
  core::execution& state;

  // For the sources of a reduction, one of each rank.
  const void** sources() const noexcept { return at_.sources.data(); }
  const reduction_kernels& kernels() const { return reductions_for(state.isa); }
  std::int64_t slot_bytes() const noexcept {
    return static_cast<std::int64_t>(at_.area.slot_bytes());
  }

  void arrive(const void* payload = nullptr, std::int64_t bytes = 0);  // at most mailbox::room
  // bytes: of the whole, as its rank gave it.
  const char* payload(int of, std::int64_t bytes) const noexcept {
    return at_.area.payload(of, sequence_, bytes);
  }

  // Whether to try meet_in_place. bytes: of the longest part, the same on every rank.
  bool may_be_in_place(std::int64_t bytes) const noexcept {
    return at_.lent != nullptr && bytes >= least_in_place;
  }
  // Meets. Of what peers read: where it lies and its bytes, 0: nothing. False: take the steps,
  // as many on every rank.
  struct lying {
    const void* data;
    std::int64_t bytes;
  };
  bool meet_in_place(const lying& in, const lying& out = {nullptr, 0});
  const char* in_of(int peer, std::int64_t bytes) const {
    return lying_at(peer, places_of(peer).in, bytes);
  }
  const char* out_of(int peer, std::int64_t bytes) const {
    return lying_at(peer, places_of(peer).out, bytes);
  }
  // Says that this rank has read, and waits until all have. Throws PEER: the group had ended
  // before, so a peer may have changed what was read.
  void pass();

  // Meets, saying a number to all; then the steps: as many as the rank that needs most, but at
  // least one. write(step) before it is posted, read(step) when all have posted it. span: bytes of
  // a slot that any rank uses in a step, the same on every rank.
  struct course {
    std::int64_t steps, span, saying = 0;
  };
  template <class Write, class Read>
  void steps(const course& mine, Write&& write, Read&& read) {
    std::int64_t all = mine.steps;
    given_span_ = std::min(mine.span, slot_bytes());
    moves_ = !came_ && at_.writer.goes_through(given_span_);
    const auto span = core::round_up(static_cast<std::size_t>(given_span_), line);
    for (std::int64_t step = 0; step == 0 || step < all; ++step) {
      moved_ = at_.area.moved_by(at_.steps, span);
      await_steps(at_.steps);
      write(step);
      if (step == 0 && !came_) {
        all = meet_for(mine.steps, mine.saying);
      } else {
        at_.area.post(rank, steps_of(rank), at_.steps + 1);
        await_steps(at_.steps + 1);
      }
      read(step);
      ++at_.steps;
    }
  }
  std::int64_t said(int by) const noexcept { return opening_of(by).saying; }
  char* mine() const noexcept { return at_.area.slot(rank, at_.steps, moves_ ? moved_ : 0); }
  const char* of(int peer) const noexcept {
    const bool moves = !came_ && opening_of(peer).moves();
    return at_.area.slot(peer, at_.steps, moves ? moved_ : 0);
  }

  // Copies: into the slot, for others to read, and out of a slot.
  void stage(const void* from, char* to, std::int64_t bytes) const {
    at_.writer.copy(kernels(), from, to, bytes);
  }
  void fetch(const char* from, void* to, std::int64_t bytes) const;

  // What stands at sources(). Throws PEER: the caller's function has ended the group, so nothing of
  // what it left may reach a peer.
  void combine(void* out, std::int64_t n, bool bypass) const {
    if (n == 0) return;
    what.combine({sources(), size, out, n, what.terms.scale, bypass});
    if (what.custom != nullptr) raise_if_noted(at_);
  }

  // Makes what the next operation writes, if it is as short as this one, ours to write already:
  // peers have read it last time, and would give it up only when they wait for what is written
  // there. Zen 4, far from each other: a quarter of the time of 512 bytes.
  void own_next() const noexcept;

  // Ends the group: a rank has other terms than it should, which the terms cannot show.
  [[noreturn]] void disagree(int with, std::int64_t wanted, std::int64_t got);

 private:
  friend class shared_relay;
  void await_steps(std::uint64_t posted);
  struct opening {  // two words, which fit in the line of the terms
    std::int64_t saying, steps_and_moves;
    std::int64_t steps() const noexcept { return steps_and_moves / 2; }
    bool moves() const noexcept { return steps_and_moves % 2 != 0; }  // its slots, with each step
  };
  opening opening_of(int by) const noexcept;
  void look_at_peers() noexcept;
  struct places {
    windows::place in, out;
  };
  places places_of(int by) const noexcept;
  const char* lying_at(int peer, windows::place where, std::int64_t bytes) const;
  std::int64_t meet_for(std::int64_t steps, std::int64_t saying);
  bool may_take(std::int64_t theirs, std::int64_t ours) const noexcept;

  std::int64_t given_ = 0;       // bytes of the payload
  std::int64_t given_span_ = 0;  // bytes of a slot that a step uses
  bool came_ = false;            // before the steps
  bool moves_ = false;           // our slots move on with each step
  std::size_t moved_ = 0;        // bytes by which those that do lie further in this step
};

// Collectives over meetings, one file each in comm/collective.
void barrier(meeting& m);
void all_reduce(meeting& m);
void reduce(meeting& m);
void broadcast(meeting& m);
void all_gather(meeting& m);
void reduce_scatter(meeting& m);
void all_to_all(meeting& m);
void gather(meeting& m);
void scatter(meeting& m);

// Messages, which need no meeting.
void carry(place& at, const operation& what, core::execution& state);

}  // namespace velo::comm
