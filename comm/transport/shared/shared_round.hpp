// A round in shared memory (comm/transport/round.hpp).
//
// A short payload: 1. post() publishes this rank's terms and the payload in its mailbox;
// 2. wait_all() waits for all peers and compares their terms; 3. the rank reads payload(peer).
//
// A longer payload goes through staging slots in run_steps(), which all ranks take together. In
// each step a rank 1. waits until its slot is free, 2. writes own_slot(), 3. posts, 4. waits for
// the posts of all peers, and 5. reads peer_slot(rank); the post of the first step carries the
// terms. Invariant: when a rank begins step n, all ranks have finished step n - 2, whose slot it
// overwrites; all ranks take the same number of steps in an operation. A rank that writes through
// the cache (peer_writer.hpp) shifts its slots from step to step and announces that with its post.
// A step costs a cache line from each peer.
//
// If all tensors of an operation lie in registered memory (peer_mappings.hpp), peers read them in
// place: 1. exchange_locations() posts where they lie and waits for all peers; 2. the rank reads
// peer_in() and peer_out(); 3. finish_reads() is the closing barrier. If one tensor lies elsewhere,
// all ranks take the steps, with one wait more.
#pragma once

#include <algorithm>

#include "comm/transport/shared/peer_wait.hpp"
#include "core/context.hpp"
#include "core/round_up.hpp"

namespace velo::comm {

class shared_round : public peer_wait {
 public:
  shared_round(rank_context& self, const operation& op, core::execution& state);

  const operation& op;
  core::execution& state;

  void synchronize();
  void move_blocks();
  void reduce_whole();
  void reduce_blocks();

  // The sources of a reduction, one from each rank.
  const void** sources() const noexcept { return self_.sources.data(); }
  const reduction_kernels& kernels() const { return reductions_for(state.isa); }
  std::int64_t slot_bytes() const noexcept {
    return static_cast<std::int64_t>(self_.area.slot_bytes());
  }

  void post(const void* payload = nullptr, std::int64_t bytes = 0);  // at most mailbox::room
  // bytes: the whole size of the payload that the rank posted.
  const char* payload(int of, std::int64_t bytes) const noexcept {
    return self_.area.payload(of, sequence_, bytes);
  }

  bool has_registered_memory() const noexcept { return self_.mappings != nullptr; }
  // Posts where the tensors lie that peers read (0 bytes: none) and waits for all peers. Returns
  // false on all ranks if some tensor is not in registered memory; the ranks then take the steps.
  struct tensor_bytes {
    const void* data;
    std::int64_t bytes;
  };
  bool exchange_locations(const tensor_bytes& in, const tensor_bytes& out = {nullptr, 0});
  const char* peer_in(int peer, std::int64_t bytes) const {
    return mapped(peer, locations_of(peer).in, bytes);
  }
  const char* peer_out(int peer, std::int64_t bytes) const {
    return mapped(peer, locations_of(peer).out, bytes);
  }
  // The barrier after reads in place. Throws PEER if the group has already ended, since a peer may
  // then have changed the bytes during the reads.
  void finish_reads();

  // Posts a number, waits for all peers, and takes the steps: the most that any rank asks for, at
  // least one. write(step) runs before the step is posted, read(step) after all ranks have posted
  // it. span: the bytes of a slot that a step uses, equal on every rank.
  struct step_plan {
    std::int64_t steps, span, number = 0;
  };
  template <class Write, class Read>
  void run_steps(const step_plan& mine, Write&& write, Read&& read) {
    std::int64_t all = mine.steps;
    step_span_ = std::min(mine.span, slot_bytes());
    shifts_ = !posted_ && self_.writer.uses_cache(step_span_);
    const auto span = core::round_up(static_cast<std::size_t>(step_span_), line);
    for (std::int64_t step = 0; step == 0 || step < all; ++step) {
      shift_ = self_.area.slot_shift(self_.steps, span);
      await_steps(self_.steps);
      write(step);
      if (step == 0 && !posted_) {
        all = open_steps(mine.steps, mine.number);
      } else {
        self_.area.post(rank, steps_of(rank), self_.steps + 1);
        await_steps(self_.steps + 1);
      }
      read(step);
      ++self_.steps;
    }
  }
  std::int64_t number_of(int peer) const noexcept { return opening_of(peer).number; }
  char* own_slot() const noexcept {
    return self_.area.slot(rank, self_.steps, shifts_ ? shift_ : 0);
  }
  const char* peer_slot(int peer) const noexcept {
    const bool shifts = !posted_ && opening_of(peer).shifts();
    return self_.area.slot(peer, self_.steps, shifts ? shift_ : 0);
  }

  // stage() copies into a slot, for peers to read; fetch() copies out of a slot.
  void stage(const void* from, char* to, std::int64_t bytes) const {
    self_.writer.copy(kernels(), from, to, bytes);
  }
  void fetch(const char* from, void* to, std::int64_t bytes) const;

  // Reduces sources(). Throws PEER if a custom reduction has ended the group: its result must not
  // reach a peer.
  void combine(void* out, std::int64_t n, bool bypass) const {
    if (n == 0) return;
    op.combine({sources(), size, out, n, op.terms.scale, bypass});
    if (op.reducer.custom != nullptr) raise_recorded_fault(self_);
  }

  // Prefetches the mailbox lines of the next operation for writing, as many as this one used. Peers
  // finished reading them four operations ago but still hold them in their caches. The prefetch
  // saves a quarter of a 512-byte operation's time between two complexes of a Zen 4.
  void prefetch_next_mailbox() const noexcept;

  // Ends the group because the counts of `peer` and of this rank differ, which the terms do not
  // show.
  [[noreturn]] void raise_mismatch(int peer, std::int64_t wanted, std::int64_t got);

 private:
  friend class shared_relay;
  void await_steps(std::uint64_t posted);
  // The payload of a post that opens steps: two words, which fit in the mailbox line.
  struct opening {
    std::int64_t number, steps_and_shifts;
    std::int64_t steps() const noexcept { return steps_and_shifts / 2; }
    bool shifts() const noexcept { return steps_and_shifts % 2 != 0; }
  };
  opening opening_of(int peer) const noexcept;
  void probe_peers() noexcept;
  struct locations {
    peer_mappings::location in, out;
  };
  locations locations_of(int peer) const noexcept;
  const char* mapped(int peer, peer_mappings::location where, std::int64_t bytes) const;
  std::int64_t open_steps(std::int64_t steps, std::int64_t number);
  bool may_take(std::int64_t theirs, std::int64_t ours) const noexcept;

  std::int64_t payload_bytes_ = 0;
  std::int64_t step_span_ = 0;  // bytes of a slot that a step uses
  bool posted_ = false;         // before the steps
  bool shifts_ = false;         // this rank's slots shift from step to step
  std::size_t shift_ = 0;       // bytes by which shifting slots are displaced in this step
};

// Messages between two ranks, which need no round.
void run_messages(rank_context& self, const message_batch& batch, core::execution& state);

}  // namespace velo::comm
