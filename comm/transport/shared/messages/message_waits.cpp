// Recording waits, and checking the records against the channels.
#include "comm/transport/shared/messages/message_waits.hpp"

#include "comm/transport/blame.hpp"

namespace velo::comm {
namespace {

using words = std::atomic<std::uint64_t>[message_wait::words];

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

// Whether a rank waits: it has recorded a wait, and none of the awaited events has happened.
bool is_blocked(const shared_area& area, int rank, rank_set& by) noexcept {
  const message_wait& note = area.state(rank).waits;
  bool waits = false;
  for (int peer = 0; peer < area.ranks(); ++peer) {
    const bool receives = has(note.receives_from, peer), sends = has(note.sends_to, peer);
    if (!receives && !sends) continue;
    if (receives && !is_empty(area.channel_from(peer, rank))) return false;
    if (sends && !is_full(area.channel_from(rank, peer))) return false;
    by.add(peer);
    waits = true;
  }
  return waits;
}

}  // namespace

void record_wait(const shared_area& area, int rank, int peer, bool receives) noexcept {
  message_wait& note = area.state(rank).waits;
  words& all = receives ? note.receives_from : note.sends_to;
  all[peer / 64].fetch_or(std::uint64_t{1} << peer % 64, std::memory_order_release);
}

void clear_waits(const shared_area& area, int rank) noexcept {
  message_wait& note = area.state(rank).waits;
  for (int word = 0; word <= (area.ranks() - 1) / 64; ++word) {
    note.receives_from[word].store(0, std::memory_order_release);
    note.sends_to[word].store(0, std::memory_order_release);
  }
}

rank_set to_blame(const shared_area& area, int rank, const rank_set& awaited) noexcept {
  return to_blame(area.ranks(), rank, awaited,
                  [&](int peer, rank_set& by) { return is_blocked(area, peer, by); });
}

}  // namespace velo::comm
