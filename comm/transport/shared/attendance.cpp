// Waiting for ranks, and what can come instead of them.
#include "comm/transport/shared/attendance.hpp"

#include <algorithm>
#include <utility>

#include "comm/transport/shared/wait_notes.hpp"

namespace velo::comm {

void attendance::meet() {
  meet_earlier(at_);
  const std::uint64_t agreed = box(rank).signature;
  bool same = true;
  for (int peer = 0; peer < size; ++peer) {
    wait(peer, &attendance::arrival, sequence_);
    same = same && box(peer).signature == agreed;
  }
  if (same) return;
  fault why;
  why.sequence = sequence_;
  why.set_disagreement(size, [this](int peer) { return box(peer).terms; });
  if (why.culprits.lowest() < 0) blame_signatures(why);
  end_group(at_, why);
}

// Terms agree, and what ranks wrote beside them does not.
void attendance::blame_signatures(fault& why) const noexcept {
  why.kind = fault::how::corrupt;
  rank_set others;
  for (int peer = 0; peer < size; ++peer) {
    if (box(peer).signature != box(peer).terms.signature()) why.culprits.add(peer);
    if (peer != rank) others.add(peer);
  }
  if (why.culprits.lowest() < 0) why.culprits = others;
}

void attendance::leave() {
  meet_earlier(at_);
  at_.owes = sequence_;
}

void meet_earlier(place& at) {
  if (at.owes == 0) return;
  const std::uint64_t owed = std::exchange(at.owes, 0);
  const mailbox& ours = at.area.box(at.rank, owed);
  attendance(at, owed, ours.terms).meet();
}

fault attendance::fault_now() const {
  fault why;
  why.sequence = sequence_;
  why.terms = terms_;
  why.timeout_ns = at_.timeout_ns;
  return why;
}

void attendance::wait_longer(int peer, word by, std::uint64_t wanted) {
  std::atomic<std::uint64_t>& awaited = (this->*by)(peer);
  const auto there = [&] { return awaited.load(std::memory_order_acquire) >= wanted; };
  const auto around = [&](std::int64_t waited) {
    // Looked at first: who came, and then ended the group or left it, has come.
    const bool ended = at_.area.is_noted();
    const bool left = at_.area.state(peer).left.load(std::memory_order_acquire) != 0;
    if (there()) return;
    if (ended) raise_if_noted(at_);
    if (left || waited >= yield_ns) raise_if_gone(at_, peer, waited, fault_now());
    const bool looks = at_.beside != nullptr && waited >= yield_ns;
    if (!looks && waited < at_.timeout_ns) return;
    const rank_set late = late_ranks(by, wanted);
    if (late.lowest() < 0) return;  // all have come meanwhile
    if (looks) at_.beside->look(waited, late);
    if (waited < at_.timeout_ns) return;
    fault why = fault_now();
    why.kind = fault::how::late;
    why.culprits = to_blame(at_.area, rank, late);
    end_group(at_, why);
  };
  wait_until(at_, there, around,
             [&](std::int64_t ns) { at_.area.sleep(peer, awaited, wanted, ns); });
}

// Those that are furthest behind, for those in between wait for them. None: all have come
// meanwhile.
rank_set attendance::late_ranks(word by, std::uint64_t wanted) const noexcept {
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
