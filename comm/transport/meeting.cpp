// Mailboxes and steps, and what can come instead of peers.
#include "comm/transport/meeting.hpp"

#include <algorithm>
#include <cstring>

namespace velo::comm {

meeting::meeting(place& at, const operation& what, core::execution& state)
    : what(what),
      state(state),
      rank(at.rank),
      size(at.area.ranks()),
      at_(at),
      sequence_(++at.met) {}

void meeting::arrive(const void* payload, std::int64_t bytes) {
  mailbox& mine = box(rank);
  mine.terms = what.terms;
  mine.signature = what.terms.signature();
  if (bytes > 0) std::memcpy(mine.payload, payload, static_cast<std::size_t>(bytes));
  at_.area.post(rank, mine.sequence, sequence_);
}

void meeting::meet() {
  const std::uint64_t agreed = box(rank).signature;
  bool same = true;
  for (int peer = 0; peer < size; ++peer) {
    wait(peer, &meeting::arrival, sequence_);
    same = same && box(peer).signature == agreed;
  }
  if (same) return;
  fault why;
  why.sequence = sequence_;
  why.set_disagreement(size, [this](int peer) { return box(peer).terms; });
  end_group(at_, why);
}

meeting::opening meeting::opening_of(int by) const noexcept {
  opening theirs;
  std::memcpy(&theirs, payload(by), sizeof theirs);
  return theirs;
}

std::int64_t meeting::meet_for(std::int64_t steps, std::int64_t saying) {
  const opening mine{steps, saying, moves_};
  arrive(&mine, sizeof mine);
  meet();
  for (int peer = 0; peer < size; ++peer) steps = std::max(steps, opening_of(peer).steps);
  return steps;
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

void meeting::begin_step() {
  for (int peer = 0; peer < size; ++peer) wait(peer, &meeting::steps_of, at_.steps);
}

void meeting::post_step() {
  at_.area.post(rank, at_.area.state(rank).steps, at_.steps + 1);
}

void meeting::await_step() {
  for (int peer = 0; peer < size; ++peer) wait(peer, &meeting::steps_of, at_.steps + 1);
}

fault meeting::fault_now() const {
  fault why;
  why.sequence = sequence_;
  why.terms = what.terms;
  why.timeout_ns = at_.timeout_ns;
  return why;
}

void meeting::wait_longer(int peer, word by, std::uint64_t wanted) {
  std::atomic<std::uint64_t>& awaited = (this->*by)(peer);
  const auto there = [&] { return awaited.load(std::memory_order_acquire) >= wanted; };
  const auto around = [&](std::int64_t waited) {
    raise_if_noted(at_);
    const bool left = at_.area.state(peer).left.load(std::memory_order_acquire) != 0;
    if (there()) return;
    if (left || waited >= yield_ns) raise_if_gone(at_, peer, waited, fault_now());
    if (waited < at_.timeout_ns) return;
    fault why = fault_now();
    why.kind = fault::how::late;
    why.culprits = late_ranks(by, wanted);
    if (why.culprits.lowest() >= 0) end_group(at_, why);
  };
  wait_until(at_, there, around,
             [&](std::int64_t ns) { at_.area.sleep(peer, awaited, wanted, ns); });
}

// Those that are furthest behind, for those in between wait for them. None: all have come meanwhile.
rank_set meeting::late_ranks(word by, std::uint64_t wanted) const noexcept {
  rank_set late;
  std::uint64_t least = wanted;
  for (int peer = 0; peer < size; ++peer) {
    const std::uint64_t has = (this->*by)(peer).load(std::memory_order_acquire);
    if (has < least) late = rank_set();
    least = std::min(least, has);
    if (has < wanted && has == least) late.add(peer);
  }
  return late;
}

}  // namespace velo::comm
