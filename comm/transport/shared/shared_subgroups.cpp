// Subgroups in shared memory: of listed ranks, or of the ranks that survive a fault.
//
// Survivors agree through one word of the area. Each rank that calls shrink proposes the set of
// ranks that have called it, once no other rank can be expected. The first rank that writes its
// number into the word decides for all. A rank that calls later and is not in the decided set is
// excluded.
//
// If the deciding rank dies, its word and its set stay in the area, so the others still agree. They
// wait for it in the new group until its process is found gone, fail with PEER, and may call
// shrink again: the next attempt leaves it out.
#include <ctime>

#include "comm/transport/self/self.hpp"
#include "comm/transport/shared/shared_transport.hpp"

namespace velo::comm {
namespace {

constexpr timespec pause{0, 500000};
constexpr int rank_bits = 16;

// One rank's view of the ranks that may survive.
struct survey {
  rank_set present;
  bool is_complete = true;
};

survey survey_ranks(const rank_context& self, std::uint64_t attempt, const fault& why) {
  survey seen;
  rank_set gone = why.kind == fault::how::late ? self.waits.culprits_here(why) : rank_set();
  char cause[128];
  if (self.watch != nullptr) self.watch->find_gone(gone, cause);
  for (int peer = 0; peer < self.area.ranks(); ++peer) {
    const rank_state& there = self.area.state(peer);
    if (there.shrinks.load(std::memory_order_acquire) >= attempt) {
      seen.present.add(peer);
    } else if (there.left.load(std::memory_order_acquire) == 0 && !gone.has(peer)) {
      seen.is_complete = false;
    }
  }
  return seen;
}

// Returns the ranks that survive an attempt.
rank_set agree(const rank_context& self, std::uint64_t attempt, std::int64_t timeout_ns) {
  fault why;
  self.area.read_fault(self.rank, why);
  rank_state& me = self.area.state(self.rank);
  std::atomic<std::uint64_t>& decided = self.area.decided();
  me.shrinks.store(attempt, std::memory_order_release);
  const std::int64_t begin = now_ns();
  std::uint64_t word;
  while ((word = decided.load(std::memory_order_acquire)) >> rank_bits < attempt) {
    const survey seen = survey_ranks(self, attempt, why);
    if (seen.is_complete || now_ns() - begin >= timeout_ns) {
      me.proposed[attempt % 2] = seen.present;
      const std::uint64_t mine = attempt << rank_bits | static_cast<unsigned>(self.rank + 1);
      if (decided.compare_exchange_strong(word, mine, std::memory_order_acq_rel)) word = mine;
      continue;
    }
    nanosleep(&pause, nullptr);
  }
  if (word >> rank_bits > attempt) return rank_set();  // the others are at a later attempt
  const auto decider = static_cast<int>(word & ((1u << rank_bits) - 1)) - 1;
  if (decider < 0 || decider >= self.area.ranks()) return rank_set();  // no rank wrote this word
  return self.area.state(decider).proposed[attempt % 2];
}

}  // namespace

std::unique_ptr<transport> shared_transport::subgroup(const subgroup_terms& of) {
  return join(of);
}

std::unique_ptr<transport> shared_transport::shrink(const subgroup_terms& given) {
  subgroup_terms of = given;
  of.kind = other_call::shrink;
  of.round = ++shrinks_;
  const rank_set survivors = agree(self_, of.round, of.timeout_ns);
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == self_.rank) of.rank = static_cast<int>(of.ranks.size());
    if (survivors.has(rank)) of.ranks.push_back(rank);
  }
  if (!survivors.has(self_.rank)) {
    rank_set out;
    out.add(self_.rank);
    of.raise(fault::how::late, out, "the others went on without this rank");
  }
  return join(of);
}

std::unique_ptr<transport> shared_transport::join(const subgroup_terms& of) {
  if (of.ranks.size() == 1) return std::make_unique<self_transport>();
  try {
    return subgroups_->join(of, [this, &of] { raise_if_impossible(of); });
  } catch (const missing_ranks& missing) {
    rank_set late;
    for (std::size_t rank = 0; rank < of.ranks.size(); ++rank)
      if (missing.ranks.has(static_cast<int>(rank))) late.add(of.ranks[rank]);
    of.raise(fault::how::late, late, "");
  }
}

// A rank that left the parent, or whose process is gone, never joins; no rank joins a subgroup of a
// group that has ended.
void shared_transport::raise_if_impossible(const subgroup_terms& of) const {
  if (of.kind == other_call::create_part) raise_recorded_fault(self_);
  rank_set left, gone, ended;
  char cause[128] = "";
  if (watch_ != nullptr) watch_->find_gone(gone, cause);
  for (const int rank : of.ranks) {
    if (self_.area.state(rank).left.load(std::memory_order_acquire) != 0) left.add(rank);
    if (gone.has(rank)) ended.add(rank);
  }
  if (left.lowest() >= 0) of.raise(fault::how::left, left, "");
  if (ended.lowest() >= 0) of.raise(fault::how::ended, ended, cause);
}

}  // namespace velo::comm
