// The layout of the area, sleeping and waking, and the recorded fault.
#include "comm/transport/shared/shared_area.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/host/clock.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

static_assert(std::is_trivially_copyable_v<fault> && std::is_standard_layout_v<fault>);

constexpr std::size_t head_bytes = core::round_up(sizeof(area_head), line);

// A channel slot is half a staging slot, and less from five ranks on, so that all channels to one
// rank take at most eight staging slots. It has at least a page.
std::size_t channel_slot_bytes(int ranks, std::size_t slot_bytes) {
  const std::size_t share = 2 * slot_bytes / static_cast<std::size_t>(ranks) / page * page;
  return std::max(page, std::min(slot_bytes / 2 / page * page, share));
}

std::size_t pairs(int ranks) {
  return static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
}

std::size_t channels_bytes(int ranks, std::size_t slot_bytes) {
  return core::round_up(pairs(ranks) * sizeof(channel), page) +
         pairs(ranks) * shared_area::channel_slots * channel_slot_bytes(ranks, slot_bytes);
}

// A relay slot holds several whole rows of a product. The four slots of each of two ranks fit in an
// L3.
std::size_t relay_slot_bytes(std::size_t slot_bytes) {
  return std::min(16 * slot_bytes, std::size_t{4} << 20);
}

std::size_t relays_bytes(int ranks, std::size_t slot_bytes) {
  return static_cast<std::size_t>(ranks) * shared_area::relay_slots * relay_slot_bytes(slot_bytes);
}

// A rank's heap has 16 MiB unless the caller sets the staging buffer. Untouched pages take no
// memory.
std::size_t message_heap_bytes_of(std::size_t slot_bytes) {
  return std::min(64 * slot_bytes, std::size_t{256} << 20);
}

std::size_t states_bytes(int ranks) {
  return core::round_up(head_bytes + static_cast<std::size_t>(ranks) * sizeof(rank_state), page);
}

// The mailbox payloads follow the rank states.
std::size_t control_bytes(int ranks) {
  static_assert(mailbox::room <= page);
  return states_bytes(ranks) + static_cast<std::size_t>(ranks) * mailbox::count * page;
}

// The half of a counter on which a futex sleeps. No counter advances by 2^32 during a sleep.
std::atomic<std::uint32_t>& low_half(std::atomic<std::uint64_t>& word) {
  static_assert(sizeof word == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return reinterpret_cast<std::atomic<std::uint32_t>&>(word);
}

}  // namespace

// The smallest slot holds 128 elements of 8 bytes for each rank, and as many results.
std::size_t shared_area::least_slot(int ranks) noexcept {
  return core::round_up((static_cast<std::size_t>(ranks) + 1) * 128 * 8, page);
}

std::size_t shared_area::slot_for(std::size_t buffer, int ranks) noexcept {
  return core::round_up(std::max(buffer / slots, least_slot(ranks)), page);
}

std::size_t shared_area::needed_for(int ranks, std::size_t slot_bytes) noexcept {
  return control_bytes(ranks) + static_cast<std::size_t>(ranks) * slots * slot_bytes;
}

std::size_t shared_area::bytes_for(int ranks, std::size_t slot_bytes) noexcept {
  return needed_for(ranks, slot_bytes) + channels_bytes(ranks, slot_bytes) +
         relays_bytes(ranks, slot_bytes) +
         static_cast<std::size_t>(ranks) * message_heap_bytes_of(slot_bytes);
}

shared_area::shared_area(void* memory, int ranks, std::size_t slot_bytes,
                         core::sleepers who) noexcept
    : head_(static_cast<area_head*>(memory)),
      states_(reinterpret_cast<rank_state*>(static_cast<char*>(memory) + head_bytes)),
      payloads_(static_cast<char*>(memory) + states_bytes(ranks)),
      staging_(static_cast<char*>(memory) + control_bytes(ranks)),
      channels_(
          reinterpret_cast<channel*>(static_cast<char*>(memory) + needed_for(ranks, slot_bytes))),
      channel_slots_(reinterpret_cast<char*>(channels_) +
                     core::round_up(pairs(ranks) * sizeof(channel), page)),
      ranks_(ranks),
      slot_bytes_(slot_bytes),
      channel_bytes_(channel_slot_bytes(ranks, slot_bytes)),
      relay_bytes_(relay_slot_bytes(slot_bytes)),
      message_heap_bytes_(message_heap_bytes_of(slot_bytes)),
      relays_(reinterpret_cast<char*>(channels_) + channels_bytes(ranks, slot_bytes)),
      message_heaps_(relays_ + relays_bytes(ranks, slot_bytes)),
      who_(who) {}

void shared_area::sleep(int on, std::atomic<std::uint64_t>& word, std::uint64_t wanted,
                        std::int64_t timeout_ns) const noexcept {
  std::atomic<std::uint32_t>& asleep = state(on).asleep;
  asleep.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t seen = word.load(std::memory_order_seq_cst);
  if (seen < wanted && !has_fault()) {
    const timespec time{static_cast<time_t>(timeout_ns / 1000000000),
                        static_cast<long>(timeout_ns % 1000000000)};
    core::futex_wait(low_half(word), static_cast<std::uint32_t>(seen), &time, who_);
  }
  asleep.fetch_sub(1, std::memory_order_relaxed);
}

void shared_area::wake(std::atomic<std::uint64_t>& word) const noexcept {
  core::futex_wake(low_half(word), INT_MAX, who_);
}

void shared_area::ring_doorbell(int peer) const noexcept {
  rank_state& there = state(peer);
  if (there.listening.load(std::memory_order_seq_cst) == 0) return;
  there.doorbell.fetch_add(1, std::memory_order_seq_cst);
  wake(there.doorbell);
}

void shared_area::wake_all() const noexcept {
  for (int rank = 0; rank < ranks_; ++rank) {
    for (mailbox& box : state(rank).boxes) wake(box.sequence);
    wake(state(rank).steps);
    wake(state(rank).doorbell);
    wake(state(rank).released);
  }
}

void shared_area::record_fault(int rank, const fault& why) const noexcept {
  fault_record& own = state(rank).note;
  if (own.taken.exchange(1, std::memory_order_acquire) != 0) {
    // Either another thread of this rank is writing a fault, which takes microseconds, or the word
    // is corrupt.
    const std::int64_t until = core::now_ns() + 1000000000;
    while (!has_fault() && core::now_ns() < until) sched_yield();
    if (has_fault()) return;
  }
  own.what = why;
  std::uint64_t none = 0;
  if (head_->first_fault.compare_exchange_strong(none, static_cast<std::uint64_t>(rank) + 1,
                                                 std::memory_order_seq_cst))
    wake_all();
}

// Every field is checked, since a peer wrote it. If no rank can be blamed, all other ranks are.
bool shared_area::read_fault(int rank, fault& why) const noexcept {
  const std::uint64_t first = head_->first_fault.load(std::memory_order_seq_cst);
  if (first == 0) return false;
  const bool is_rank = first <= static_cast<std::uint64_t>(ranks_);
  alignas(fault) char copy[sizeof(fault)] = {};
  if (is_rank) std::memcpy(copy, &states_[first - 1].note.what, sizeof copy);
  copy[offsetof(fault, is_outer)] &= 1;
  copy[offsetof(fault, is_outermost)] &= 1;
  copy[offsetof(fault, cause) + sizeof why.cause - 1] = 0;
  copy[offsetof(fault, part) + sizeof why.part - 1] = 0;
  std::memcpy(&why, copy, sizeof copy);
  rank_set known;
  for (int peer = 0; peer < ranks_; ++peer)
    if (why.culprits.has(peer)) known.add(peer);
  if (!why.is_outer && !why.is_outermost) why.culprits = known;
  if (why.expecting_rank < -1 || why.expecting_rank >= ranks_) why.expecting_rank = -1;
  const bool makes_sense = why.kind > fault::how::none && why.kind <= fault::how::corrupt;
  if (is_rank && makes_sense) {
    if (why.culprits.lowest() < 0) why.culprits.add(static_cast<int>(first) - 1);
    return true;
  }
  why.kind = fault::how::corrupt;
  why.culprits = rank_set();
  for (int peer = 0; peer < ranks_; ++peer)
    if (is_rank ? peer == static_cast<int>(first) - 1 : peer != rank) why.culprits.add(peer);
  return true;
}

}  // namespace velo::comm
