// Posts, waits and steps of a round.
#include "comm/transport/shared/shared_round.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "comm/operation/short_copy.hpp"
#include "core/host/prefetch.hpp"

namespace velo::comm {

shared_round::shared_round(rank_context& self, const operation& op, core::execution& state)
    : peer_wait(self, ++self.operations, op.terms), op(op), state(state) {}

// The line that peers poll is written last and all at once, since it moves to their caches when
// they read it.
void shared_round::post(const void* payload, std::int64_t bytes) {
  mailbox& mine = box(rank);
  copy_short(self_.area.payload(rank, sequence_, bytes), payload, bytes);
  mine.terms = op.terms;
  mine.signature = op.terms.signature();
  payload_bytes_ = bytes;
  self_.area.post(rank, mine.sequence, sequence_);
}

shared_round::opening shared_round::opening_of(int peer) const noexcept {
  opening theirs;
  std::memcpy(&theirs, payload(peer, sizeof theirs), sizeof theirs);
  return theirs;
}

// The post of the mailbox also announces the first step, so no rank sleeps on the step counter
// before it.
std::int64_t shared_round::open_steps(std::int64_t steps, std::int64_t number) {
  const opening ours{number, 2 * steps + (shifts_ ? 1 : 0)};
  steps_of(rank).store(self_.steps + 1, std::memory_order_release);
  post(&ours, sizeof ours);
  wait_all();
  self_.steps_posted = self_.steps + 1;
  if (step_span_ >= peer_writer::least_probed_bytes && self_.writer.probe().is_due()) probe_peers();
  std::int64_t all = steps;
  for (int peer = 0; peer < size; ++peer) {
    const std::int64_t theirs = opening_of(peer).steps();
    if (peer != rank && !may_take(theirs, steps)) end_as_corrupt(self_, peer, fault_now());
    if (peer != rank) all = std::max(all, theirs);
  }
  return all;
}

namespace {

// The size is read from the system once. A constant initializer needs no guard, which another
// thread could hold during a fork.
std::int64_t bytes_of_machine() noexcept {
  static std::atomic<std::int64_t> known{0};
  if (known.load(std::memory_order_relaxed) == 0)
    known.store(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE), std::memory_order_relaxed);
  return known.load(std::memory_order_relaxed);
}

}  // namespace

// Ranks with equal counts need equal numbers of steps. Otherwise a number of steps is plausible up
// to four times the machine's memory, since a rank may map memory more than once.
bool shared_round::may_take(std::int64_t theirs, std::int64_t ours) const noexcept {
  if (op.terms.counts == 0) return theirs == ours;
  return theirs >= 0 && theirs <= 4 * bytes_of_machine() / (slot_bytes() / size) + 1;
}

// Times the read of each peer's step counter, which the peer wrote right before its post. Each rank
// begins with the next rank, since a line that a third rank has already read may be nearer.
void shared_round::probe_peers() noexcept {
  std::int64_t longest = 0;
  for (int i = 1; i < size; ++i) {
    const int peer = (rank + i) % size;
    const std::int64_t begin = now_ns();
    steps_of(peer).load(std::memory_order_acquire);
    longest = std::max(longest, now_ns() - begin);
  }
  self_.writer.probe().record(longest);
}

bool shared_round::exchange_locations(const tensor_bytes& in, const tensor_bytes& out) {
  const locations ours{self_.mappings->find(in.data, in.bytes),
                       self_.mappings->find(out.data, out.bytes)};
  post(&ours, sizeof ours);
  wait_all();
  posted_ = true;
  for (int peer = 0; peer < size; ++peer) {
    const locations theirs = locations_of(peer);
    if (theirs.in == peer_mappings::unmapped || theirs.out == peer_mappings::unmapped) return false;
  }
  self_.area.state(rank).in_place.fetch_add(1, std::memory_order_relaxed);
  return true;
}

const char* shared_round::mapped(int peer, peer_mappings::location where,
                                 std::int64_t bytes) const {
  const char* found = self_.mappings->address(peer, where, bytes);
  if (found == nullptr) end_as_corrupt(self_, peer, fault_now());
  return found;
}

shared_round::locations shared_round::locations_of(int peer) const noexcept {
  locations theirs;
  std::memcpy(&theirs, payload(peer, sizeof theirs), sizeof theirs);
  return theirs;
}

void shared_round::finish_reads() {
  std::atomic_thread_fence(std::memory_order_acquire);  // after the reads
  raise_recorded_fault(self_);
  self_.area.post(rank, steps_of(rank), self_.steps + 1);
  await_steps(self_.steps + 1);
  ++self_.steps;
}

void shared_round::fetch(const char* from, void* to, std::int64_t bytes) const {
  if (op.is_large(state.caches.l3)) {
    kernels().copy_around_cache({from, to, bytes});
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

void shared_round::raise_mismatch(int peer, std::int64_t wanted, std::int64_t got) {
  fault why;
  why.kind = fault::how::disagree;
  why.sequence = sequence_;
  why.culprits.add(peer);
  why.expecting_rank = rank;
  why.terms = why.other = op.terms;
  why.terms.count = wanted;
  why.other.count = got;
  end_group(self_, why);
}

// Returns at once for steps that all ranks are known to have posted. Only in a relay may peers
// still read when the last step is posted.
void shared_round::await_steps(std::uint64_t posted) {
  if (self_.steps_posted >= posted) return;
  for (int peer = 0; peer < size; ++peer) wait(peer, &shared_round::steps_of, posted);
  self_.steps_posted = posted;
}

void shared_round::prefetch_next_mailbox() const noexcept {
  const auto prefetch = [](const void* lines, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += 64)
      core::prefetch_to_write(static_cast<const char*>(lines) + at);
  };
  prefetch(&self_.area.box(rank, sequence_ + 1), 1);
  if (payload_bytes_ > mailbox::inlined)
    prefetch(self_.area.payload(rank, sequence_ + 1, payload_bytes_), payload_bytes_);
}

}  // namespace velo::comm
