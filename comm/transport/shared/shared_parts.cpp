// Groups made of ranks of another that share memory: those that are listed, or those that survive.
//
// Survivors agree by one word of the area. Each rank that comes writes down who it sees: those that
// have come, once nobody else can be hoped for. The first one to put its number into the word
// decides for all, so that nobody needs to survive for long; who comes later and is not among them
// is out.
#include <ctime>

#include "comm/transport/self/self.hpp"
#include "comm/transport/shared/shared_transport.hpp"

namespace velo::comm {
namespace {

constexpr timespec pause{0, 500000};
constexpr int rank_bits = 16;

// Who may go on, as one rank sees it.
struct survey {
  rank_set here;
  bool all_came = true;
};

survey look(const place& at, std::uint64_t attempt, const fault& why) {
  survey seen;
  rank_set gone = why.kind == fault::how::late ? why.culprits : rank_set();
  char cause[128];
  if (at.watch != nullptr) at.watch->find_gone(gone, cause);
  for (int peer = 0; peer < at.area.ranks(); ++peer) {
    const rank_state& there = at.area.state(peer);
    if (there.shrinks.load(std::memory_order_acquire) >= attempt) {
      seen.here.add(peer);
    } else if (there.left.load(std::memory_order_acquire) == 0 && !gone.has(peer)) {
      seen.all_came = false;
    }
  }
  return seen;
}

// Of an attempt, the ranks that go on.
rank_set agree(const place& at, std::uint64_t attempt, std::int64_t timeout_ns) {
  fault why;
  at.area.noted(at.rank, why);
  rank_state& me = at.area.state(at.rank);
  std::atomic<std::uint64_t>& decided = at.area.decided();
  me.shrinks.store(attempt, std::memory_order_release);
  const std::int64_t begin = now_ns();
  std::uint64_t word;
  while ((word = decided.load(std::memory_order_acquire)) >> rank_bits < attempt) {
    const survey seen = look(at, attempt, why);
    if (seen.all_came || now_ns() - begin >= timeout_ns) {
      me.proposed[attempt % 2] = seen.here;
      const std::uint64_t mine = attempt << rank_bits | static_cast<unsigned>(at.rank + 1);
      if (decided.compare_exchange_strong(word, mine, std::memory_order_acq_rel)) word = mine;
      continue;
    }
    nanosleep(&pause, nullptr);
  }
  if (word >> rank_bits > attempt) return rank_set();  // they are further
  const auto decider = static_cast<int>(word & ((1u << rank_bits) - 1)) - 1;
  if (decider < 0 || decider >= at.area.ranks()) return rank_set();  // nobody's word
  return at.area.state(decider).proposed[attempt % 2];
}

}  // namespace

std::unique_ptr<transport> shared_transport::part(const part_terms& of) {
  return meet(of);
}

std::unique_ptr<transport> shared_transport::shrink(const part_terms& given) {
  part_terms of = given;
  of.kind = collective::shrink;
  of.round = ++shrinks_;
  const rank_set survivors = agree(at_, of.round, of.timeout_ns);
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == at_.rank) of.place = static_cast<int>(of.ranks.size());
    if (survivors.has(rank)) of.ranks.push_back(rank);
  }
  if (!survivors.has(at_.rank)) {
    rank_set out;
    out.add(at_.rank);
    of.raise(fault::how::late, out, "the others went on without this rank");
  }
  return meet(of);
}

std::unique_ptr<transport> shared_transport::meet(const part_terms& of) {
  if (of.ranks.size() == 1) return std::make_unique<self_transport>();
  try {
    return parts_->meet(of, [this, &of] { raise_if_hopeless(of); });
  } catch (const not_there& missing) {
    rank_set late;
    for (std::size_t place = 0; place < of.ranks.size(); ++place)
      if (missing.places.has(static_cast<int>(place))) late.add(of.ranks[place]);
    of.raise(fault::how::late, late, "");
  }
}

// A rank of the part that left, or whose process is gone, does not come; nor does any for a part of
// a group that has ended.
void shared_transport::raise_if_hopeless(const part_terms& of) const {
  if (of.kind == collective::create_part) raise_if_noted(at_);
  rank_set left, gone, ended;
  char cause[128] = "";
  if (watch_ != nullptr) watch_->find_gone(gone, cause);
  for (const int rank : of.ranks) {
    if (at_.area.state(rank).left.load(std::memory_order_acquire) != 0) left.add(rank);
    if (gone.has(rank)) ended.add(rank);
  }
  if (left.lowest() >= 0) of.raise(fault::how::left, left, "");
  if (ended.lowest() >= 0) of.raise(fault::how::ended, ended, cause);
}

}  // namespace velo::comm
