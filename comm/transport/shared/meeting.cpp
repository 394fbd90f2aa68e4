// Mailboxes and steps.
#include "comm/transport/shared/meeting.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "comm/group/short_copy.hpp"
#include "core/host/prefetch.hpp"

namespace velo::comm {

meeting::meeting(place& at, const operation& what, core::execution& state)
    : attendance(at, ++at.met, what.terms), what(what), state(state) {}

// The line that peers wait for comes last, all at once: it is theirs again as soon as they look at
// it.
void meeting::arrive(const void* payload, std::int64_t bytes) {
  mailbox& mine = box(rank);
  copy_short(at_.area.payload(rank, sequence_, bytes), payload, bytes);
  mine.terms = what.terms;
  mine.signature = what.terms.signature();
  given_ = bytes;
  at_.area.post(rank, mine.sequence, sequence_);
}

meeting::opening meeting::opening_of(int by) const noexcept {
  opening theirs;
  std::memcpy(&theirs, payload(by, sizeof theirs), sizeof theirs);
  return theirs;
}

// The arrival says that the first step is posted, and nobody sleeps on anything else.
std::int64_t meeting::meet_for(std::int64_t steps, std::int64_t saying) {
  const opening ours{saying, 2 * steps + (moves_ ? 1 : 0)};
  steps_of(rank).store(at_.steps + 1, std::memory_order_release);
  arrive(&ours, sizeof ours);
  meet();
  at_.posted = at_.steps + 1;
  if (given_span_ >= peer_writer::judged_from && at_.writer.peers().wants_look()) look_at_peers();
  std::int64_t all = steps;
  for (int peer = 0; peer < size; ++peer) {
    const std::int64_t theirs = opening_of(peer).steps();
    if (peer != rank && !may_take(theirs, steps)) end_as_corrupt(at_, peer, fault_now());
    if (peer != rank) all = std::max(all, theirs);
  }
  return all;
}

namespace {

// Asked for once. Initialized before any code runs: the guard of a local constant could be held by
// another thread at a fork.
std::int64_t bytes_of_machine() noexcept {
  static std::atomic<std::int64_t> known{0};
  if (known.load(std::memory_order_relaxed) == 0)
    known.store(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE), std::memory_order_relaxed);
  return known.load(std::memory_order_relaxed);
}

}  // namespace

// Where terms tell all, ranks need the same number of steps. Else no rank needs more than carry the
// machine's memory, four times over: what it has may be mapped more than once.
bool meeting::may_take(std::int64_t theirs, std::int64_t ours) const noexcept {
  if (what.terms.counts == 0) return theirs == ours;
  return theirs >= 0 && theirs <= 4 * bytes_of_machine() / (slot_bytes() / size) + 1;
}

// Their counters of steps, which they wrote right before they came. Of more than two ranks another
// may have looked first, and so have brought the line nearer: each begins with the rank after it.
void meeting::look_at_peers() noexcept {
  std::int64_t longest = 0;
  for (int i = 1; i < size; ++i) {
    const int peer = (rank + i) % size;
    const std::int64_t begin = now_ns();
    steps_of(peer).load(std::memory_order_acquire);
    longest = std::max(longest, now_ns() - begin);
  }
  at_.writer.peers().took(longest);
}

bool meeting::meet_in_place(const lying& in, const lying& out) {
  const places ours{at_.lent->find(in.data, in.bytes), at_.lent->find(out.data, out.bytes)};
  arrive(&ours, sizeof ours);
  meet();
  came_ = true;
  for (int peer = 0; peer < size; ++peer) {
    const places theirs = places_of(peer);
    if (theirs.in == windows::nowhere || theirs.out == windows::nowhere) return false;
  }
  at_.area.state(rank).in_place.fetch_add(1, std::memory_order_relaxed);
  return true;
}

const char* meeting::lying_at(int peer, windows::place where, std::int64_t bytes) const {
  const char* found = at_.lent->at(peer, where, bytes);
  if (found == nullptr) end_as_corrupt(at_, peer, fault_now());
  return found;
}

meeting::places meeting::places_of(int by) const noexcept {
  places theirs;
  std::memcpy(&theirs, payload(by, sizeof theirs), sizeof theirs);
  return theirs;
}

void meeting::pass() {
  std::atomic_thread_fence(std::memory_order_acquire);  // the reads come first
  raise_if_noted(at_);
  at_.area.post(rank, steps_of(rank), at_.steps + 1);
  await_steps(at_.steps + 1);
  ++at_.steps;
}

void meeting::fetch(const char* from, void* to, std::int64_t bytes) const {
  if (what.is_large(state.caches.l3)) {
    kernels().copy_around_cache({from, to, bytes});
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

void meeting::disagree(int with, std::int64_t wanted, std::int64_t got) {
  fault why;
  why.kind = fault::how::disagree;
  why.sequence = sequence_;
  why.culprits.add(with);
  why.found_by = rank;
  why.terms = why.other = what.terms;
  why.terms.count = wanted;
  why.other.count = got;
  end_group(at_, why);
}

// A relay's last step is posted while others still read; any other all are known to have posted.
void meeting::await_steps(std::uint64_t posted) {
  if (at_.posted >= posted) return;
  for (int peer = 0; peer < size; ++peer) wait(peer, &meeting::steps_of, posted);
  at_.posted = posted;
}

void meeting::own_next() const noexcept {
  const auto own = [](const void* lines, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += 64)
      core::prefetch_to_write(static_cast<const char*>(lines) + at);
  };
  own(&at_.area.box(rank, sequence_ + 1), 1);
  if (given_ > mailbox::beside) own(at_.area.payload(rank, sequence_ + 1, given_), given_);
}

}  // namespace velo::comm
