// The wait for peers, and the faults that can end it.
#include "comm/transport/shared/peer_wait.hpp"

#include <algorithm>
#include <utility>

#include "comm/transport/shared/messages/message_waits.hpp"

namespace velo::comm {

void peer_wait::wait_all() {
  wait_deferred(self_);
  const std::uint64_t agreed = box(rank).signature;
  bool same = true;
  for (int peer = 0; peer < size; ++peer) {
    wait(peer, &peer_wait::posted_by, sequence_);
    same = same && box(peer).signature == agreed;
  }
  if (same) return;
  fault why;
  why.sequence = sequence_;
  why.set_disagreement(size, [this](int peer) { return box(peer).terms; });
  if (why.culprits.lowest() < 0) blame_signatures(why);
  end_group(self_, why);
}

// The terms agree but their signatures differ, so some rank wrote a wrong signature.
void peer_wait::blame_signatures(fault& why) const noexcept {
  why.kind = fault::how::corrupt;
  rank_set others;
  for (int peer = 0; peer < size; ++peer) {
    if (box(peer).signature != box(peer).terms.signature()) why.culprits.add(peer);
    if (peer != rank) others.add(peer);
  }
  if (why.culprits.lowest() < 0) why.culprits = others;
}

void peer_wait::defer_wait() {
  wait_deferred(self_);
  self_.deferred = sequence_;
}

void wait_deferred(rank_context& self) {
  if (self.deferred == 0) return;
  const std::uint64_t sequence = std::exchange(self.deferred, 0);
  const mailbox& ours = self.area.box(self.rank, sequence);
  peer_wait(self, sequence, ours.terms).wait_all();
}

fault peer_wait::fault_now() const {
  fault why;
  why.sequence = sequence_;
  why.terms = terms_;
  why.timeout_ns = self_.timeout_ns;
  return why;
}

void peer_wait::wait_slowly(int peer, word by, std::uint64_t wanted) {
  std::atomic<std::uint64_t>& awaited = (this->*by)(peer);
  const auto is_ready = [&] { return awaited.load(std::memory_order_acquire) >= wanted; };
  const auto check = [&](std::int64_t waited) {
    // These are read before the awaited word: a peer may post and then end the group or leave it.
    const bool ended = self_.area.has_fault();
    const bool left = self_.area.state(peer).left.load(std::memory_order_acquire) != 0;
    if (is_ready()) return;
    if (ended) raise_recorded_fault(self_);
    if (left || waited >= yield_ns) raise_if_gone(self_, peer, waited, fault_now());
    const bool polls = self_.progress != nullptr && waited >= yield_ns;
    if (!polls && waited < self_.timeout_ns) return;
    const rank_set late = late_ranks(by, wanted);
    if (late.lowest() < 0) return;  // all have posted meanwhile
    if (polls) self_.progress->poll(waited, late);
    if (waited < self_.timeout_ns) return;
    fault why = fault_now();
    why.kind = fault::how::late;
    why.culprits = to_blame(self_.area, rank, late);
    self_.waits.follow_waits(why);
    end_group(self_, why);
  };
  noted_wait note(self_.waits);
  wait_until(self_, is_ready, check, [&](std::int64_t ns) {
    fault wait = fault_now();
    wait.culprits.add(peer);
    note.renew(wait);
    self_.area.sleep(peer, awaited, wanted, ns);
  });
  note.clear();
}

// Returns the ranks that are furthest behind, since the ranks in between wait for these. Returns
// none if all have posted meanwhile.
rank_set peer_wait::late_ranks(word by, std::uint64_t wanted) const noexcept {
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
