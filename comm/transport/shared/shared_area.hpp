// The memory area that all ranks of a host share, and the wake-ups between them.
//
// Each rank has four mailboxes, which operations use in turn, a step counter, and staging slots.
// Only the owner writes them; all ranks read them. An operation begins when every rank has posted
// its terms and a payload of up to 1 KiB in its mailbox; longer payloads go through the staging
// slots in steps (shared_round.hpp). Messages between two ranks have channels of their own; a long
// message that is started lies in its sender's message heap (message_heap.hpp). Atomics that
// different ranks write lie in separate cache lines.
//
// A wait spins where each rank has a processor of its own, then yields, then sleeps on the awaited
// word. It checks at least every 50 ms whether the group has ended: by a recorded fault, a peer
// that is gone, or the deadline. A post loads the count of sleepers and calls futex_wake only if
// there are any.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/operation/fault.hpp"
#include "comm/transport/shared/relay.hpp"
#include "core/host/futex.hpp"

namespace velo::comm {

inline constexpr std::size_t line = 128;  // the processor fetches lines in pairs
inline constexpr std::size_t page = 4096;

// One rank's terms and payload for an operation. Peers poll one line, which holds 16 bytes of
// payload. A longer payload lies in a page of its own (shared_area::payload): a peer that polls the
// line also prefetches the next ones, which would slow the rank that is still writing them.
struct alignas(line) mailbox {
  static constexpr int count = 4;                  // mailboxes of a rank
  static constexpr int room = 1024, inlined = 16;  // bytes of a payload at most, and in this line

  std::atomic<std::uint64_t> sequence;  // of the operation; written after everything else
  std::uint64_t signature;
  comm::terms terms;
  char payload[inlined];
};
static_assert(sizeof(mailbox) == line && offsetof(mailbox, payload) + mailbox::inlined == 64);

// A fault that this rank found. It ended the group if area_head::first_fault names this rank.
struct alignas(line) fault_record {
  std::atomic<std::uint32_t> taken;  // 1: a thread is writing or has written it
  fault what;
};

// The peers for whose messages a sleeping rank waits (message_waits.hpp): a bit for each.
struct alignas(line) message_wait {
  static constexpr int words = most_ranks / 64;
  std::atomic<std::uint64_t> receives_from[words];  // the peer has to send
  std::atomic<std::uint64_t> sends_to[words];       // the peer has to empty a slot
};

// A note of a rank: the ranks for which it waits in one group, or the fault that it has met
// (area_notes.hpp). Only its rank writes it.
struct alignas(line) wait_note {
  static constexpr int count = 4;  // of a rank, as wait_notes has
  static constexpr int most_awaited = 4;
  static constexpr std::uint64_t holds = UINT64_MAX;  // a `renewed` of a fault

  std::atomic<std::uint64_t> written;  // odd while it is being written
  std::atomic<std::uint64_t> renewed;  // ns of the monotonic clock; 0: no note
  std::atomic<std::uint64_t> awaited;  // in each 16 bits 1 + a rank of the outermost group, or 0
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> label[sizeof fault::part / 8];  // of the group; empty: the outermost
  std::atomic<std::uint64_t> what[sizeof(comm::terms) / 8];
};

struct rank_state {
  mailbox boxes[mailbox::count];
  alignas(line) std::atomic<std::uint64_t> steps;     // posted since the group began
  alignas(line) std::atomic<std::uint64_t> released;  // relay pieces since the group began
  alignas(line) std::atomic<std::uint32_t> asleep;    // ranks that sleep on a word of this rank
  // Peers increment the doorbell while this rank listens for messages (message_progress.cpp).
  alignas(line) std::atomic<std::uint64_t> doorbell;
  alignas(line) std::atomic<std::uint32_t> listening;
  // 1 while this rank uses tensors of its peers (shared_relay.hpp).
  alignas(line) std::atomic<std::uint32_t> in_peer_tensors;
  alignas(line) std::atomic<std::uint64_t> done;  // the last completed operation
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint64_t> in_place;  // operations whose tensors peers read in place
  // The latest attempt to shrink the group, and the survivors that this rank proposes, by attempt.
  alignas(line) std::atomic<std::uint64_t> shrinks;
  rank_set proposed[2];
  message_wait waits;
  wait_note notes[wait_note::count];
  fault_record note;
};

// Messages from one rank to another: counts of the slots that the sender filled and of those that
// the receiver emptied.
struct channel {
  alignas(line) std::atomic<std::uint64_t> put;
  alignas(line) std::atomic<std::uint64_t> taken;
};

// The header in the first slot of a message. heap_offset: 0 if the payload follows in this slot and
// the next ones; otherwise 1 + the offset of its block in the sender's message heap.
struct alignas(64) message_head {
  comm::terms terms;
  std::uint64_t heap_offset;
};

struct area_head {
  // 1 + the rank whose fault ended the group; 0: no fault. A fault is complete before this word
  // names its rank, so a rank that dies while writing its fault hides no other fault.
  alignas(line) std::atomic<std::uint64_t> first_fault;
  alignas(
      line) std::atomic<std::uint64_t> decided;  // attempt, and 1 + the rank whose proposal holds
};

// Tells whether peers are still alive.
class liveness_watch {
 public:
  virtual ~liveness_watch() = default;
  // Adds the peers that are gone and gives the reason. A rank that waits calls it periodically.
  virtual bool find_gone(rank_set& gone, char (&cause)[128]) noexcept = 0;
};

// A view of the area: its address differs between processes, its contents do not.
//
// A faulty rank may write anything anywhere in the area. So a number from the area is copied and
// checked before it serves as an index, an offset, a count or a loop bound. An impossible value
// ends the group as a fault of the rank that owns the word (fault::how::corrupt).
class shared_area {
 public:
  static constexpr int slots = 2;  // staging slots of a rank, used in turn
  // A started message that fits in these slots does not wait for its receiver.
  static constexpr int channel_slots = 4;

  // Slot sizes are multiples of 4096 bytes. least_slot: the smallest size with which every
  // algorithm works. slot_for: the size for a rank's staging buffer. bytes_for: the size of the
  // whole area.
  static std::size_t least_slot(int ranks) noexcept;
  static std::size_t slot_for(std::size_t buffer, int ranks) noexcept;
  static std::size_t bytes_for(int ranks, std::size_t slot_bytes) noexcept;
  // The bytes at the beginning that every collective needs. Message channels, relay slots and
  // message heaps follow them.
  static std::size_t needed_for(int ranks, std::size_t slot_bytes) noexcept;

  // memory: must be zeroed before the first rank joins.
  shared_area(void* memory, int ranks, std::size_t slot_bytes, core::sleepers who) noexcept;

  int ranks() const noexcept { return ranks_; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  std::atomic<std::uint64_t>& decided() const noexcept { return head_->decided; }
  rank_state& state(int rank) const noexcept { return states_[rank]; }
  mailbox& box(int rank, std::uint64_t sequence) const noexcept {
    return state(rank).boxes[sequence % mailbox::count];
  }
  char* payload(int rank, std::uint64_t sequence, std::int64_t bytes) const noexcept {
    return bytes <= mailbox::inlined
               ? box(rank, sequence).payload
               : payloads_ +
                     (static_cast<std::size_t>(rank) * mailbox::count + sequence % mailbox::count) *
                         page;
  }
  // The offset of the `span` bytes that a step uses within its slot, if they are written through
  // the cache. It grows from step to step, so that the lines have left their readers' L2, but not
  // the L3, before they are written again. A span below a page is not shifted and stays in L1. A
  // span that fills the slot is not shifted either: slots of twice the size took 1.5 times as long.
  // Bytes that are written around the cache are not shifted, so that their pages stay in the TLB.
  std::size_t slot_shift(std::uint64_t step, std::size_t span) const noexcept {
    return span < page ? 0 : step / slots % (slot_bytes_ / span) * span;
  }
  char* slot(int rank, std::uint64_t step, std::size_t shift) const noexcept {
    return staging_ + (static_cast<std::size_t>(rank) * slots + step % slots) * slot_bytes_ + shift;
  }

  // Messages: each slot has channel_bytes.
  std::size_t channel_bytes() const noexcept { return channel_bytes_; }
  channel& channel_from(int from, int to) const noexcept { return channels_[from * ranks_ + to]; }
  char* channel_slot(int from, int to, std::uint64_t number) const noexcept {
    return channel_slots_ +
           (static_cast<std::size_t>(from * ranks_ + to) * channel_slots + number % channel_slots) *
               channel_bytes_;
  }
  void ring_doorbell(int peer) const noexcept;  // if the peer listens

  // Relays (shared_relay.hpp).
  static constexpr int relay_slots = relay::slots;
  std::size_t relay_bytes() const noexcept { return relay_bytes_; }  // of a slot
  char* relay_slot(int rank, std::uint64_t number) const noexcept {
    return relays_ + (static_cast<std::size_t>(rank) * relay_slots + number) * relay_bytes_;
  }

  // Message heaps (message_heap.hpp).
  std::size_t message_heap_bytes() const noexcept { return message_heap_bytes_; }  // of a rank
  char* message_heap(int rank) const noexcept {
    return message_heaps_ + static_cast<std::size_t>(rank) * message_heap_bytes_;
  }

  // Stores the value and wakes the ranks that sleep on the word.
  void post(int rank, std::atomic<std::uint64_t>& word, std::uint64_t value) const noexcept {
    word.store(value, std::memory_order_seq_cst);
    if (state(rank).asleep.load(std::memory_order_seq_cst) != 0) wake(word);
  }
  void sleep(int on, std::atomic<std::uint64_t>& word, std::uint64_t wanted,
             std::int64_t timeout_ns) const noexcept;

  // rank: the caller. Only the first fault is kept. After the call a fault is recorded.
  void record_fault(int rank, const fault& why) const noexcept;
  bool read_fault(int rank, fault& why) const noexcept;
  bool has_fault() const noexcept {
    return head_->first_fault.load(std::memory_order_seq_cst) != 0;
  }
  void wake_all() const noexcept;

 private:
  void wake(std::atomic<std::uint64_t>& word) const noexcept;

  area_head* head_;
  rank_state* states_;
  char* payloads_;
  char* staging_;
  channel* channels_;
  char* channel_slots_;
  int ranks_;
  std::size_t slot_bytes_, channel_bytes_, relay_bytes_, message_heap_bytes_;
  char* relays_;
  char* message_heaps_;
  core::sleepers who_;
};

}  // namespace velo::comm
