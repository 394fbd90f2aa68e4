// Notes, and whether the channels bear them out.
#include "comm/transport/shared/wait_notes.hpp"

#include "comm/transport/shared/blame.hpp"

namespace velo::comm {
namespace {

using words = std::atomic<std::uint64_t>[wait_note::words];

bool has(const words& all, int rank) noexcept {
  return (all[rank / 64].load(std::memory_order_acquire) >> rank % 64 & 1) != 0;
}

bool is_empty(const channel& c) noexcept {
  return c.put.load(std::memory_order_acquire) == c.taken.load(std::memory_order_acquire);
}

bool is_full(const channel& c) noexcept {
  const std::uint64_t taken = c.taken.load(std::memory_order_acquire);
  return c.put.load(std::memory_order_acquire) - taken == shared_area::channel_slots;
}

// Whether a rank waits: it noted so, and nothing that it waits for is there.
bool is_blocked(const shared_area& area, int rank, rank_set& by) noexcept {
  const wait_note& note = area.state(rank).waits;
  bool waits = false;
  for (int peer = 0; peer < area.ranks(); ++peer) {
    const bool comes = has(note.comes, peer), goes = has(note.goes, peer);
    if (!comes && !goes) continue;
    if (comes && !is_empty(area.way(peer, rank))) return false;
    if (goes && !is_full(area.way(rank, peer))) return false;
    by.add(peer);
    waits = true;
  }
  return waits;
}

}  // namespace

void note_wait(const shared_area& area, int rank, int peer, bool receives) noexcept {
  wait_note& note = area.state(rank).waits;
  words& all = receives ? note.comes : note.goes;
  all[peer / 64].fetch_or(std::uint64_t{1} << peer % 64, std::memory_order_release);
}

void forget_waits(const shared_area& area, int rank) noexcept {
  wait_note& note = area.state(rank).waits;
  for (int word = 0; word <= (area.ranks() - 1) / 64; ++word) {
    note.comes[word].store(0, std::memory_order_release);
    note.goes[word].store(0, std::memory_order_release);
  }
}

rank_set to_blame(const shared_area& area, int rank, const rank_set& awaited) noexcept {
  return to_blame(area.ranks(), rank, awaited,
                  [&](int peer, rank_set& by) { return is_blocked(area, peer, by); });
}

}  // namespace velo::comm
