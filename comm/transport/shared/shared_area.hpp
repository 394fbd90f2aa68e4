// Memory that all ranks of a host see, and how they wait for each other in it.
//
// Each rank has four mailboxes, used in turn by operations, a counter of steps, and a place to
// stage what others read. Only the owner writes them; everybody reads. An operation begins when
// every rank has put its terms, and a payload of up to a KiB, into its mailbox; whatever is longer
// goes through the staging place in steps (meeting.hpp). Messages between two ranks have channels
// of their own; a long message that is started lies in memory that its sender lends (lending.hpp).
// All atomics that different ranks write lie in lines of their own.
//
// Waiting spins, where each rank has a processor of its own, then yields, then sleeps on the word
// awaited, and looks every 50 ms at the latest for what ends a group: a fault that somebody noted,
// a peer that is gone, the deadline. Who posts wakes sleepers only if there are any: one more load.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/group/fault.hpp"
#include "comm/transport/shared/relay.hpp"
#include "core/host/futex.hpp"

namespace velo::comm {

inline constexpr std::size_t line = 128;  // lines are fetched in pairs
inline constexpr std::size_t page = 4096;

// An operation of one rank: its terms and its payload. Peers wait for one line, with 16 bytes of
// payload in it. A longer payload lies in a page of its own (shared_area::payload): a peer that
// polls the line also prefetches the lines behind it, and so would slow the rank that is still
// writing them.
struct alignas(line) mailbox {
  static constexpr int count = 4;                 // of a rank
  static constexpr int room = 1024, beside = 16;  // bytes of a payload; those that stand here

  std::atomic<std::uint64_t> sequence;  // of the operation, when all else is there
  std::uint64_t signature;
  comm::terms terms;
  char payload[beside];
};
static_assert(sizeof(mailbox) == line && offsetof(mailbox, payload) + mailbox::beside == 64);

// A rank's fault: the one that ended the group, where the area names this rank as the first.
struct alignas(line) fault_note {
  std::atomic<std::uint32_t> taken;  // by a thread that writes it
  fault what;
};

// Whom a rank that sleeps waits for in messages (wait_notes.hpp): a bit for each peer.
struct alignas(line) wait_note {
  static constexpr int words = most_ranks / 64;
  std::atomic<std::uint64_t> comes[words];  // something is to come from it
  std::atomic<std::uint64_t> goes[words];   // it is to take something
};

struct rank_state {
  mailbox boxes[mailbox::count];
  alignas(line) std::atomic<std::uint64_t> steps;     // posted, since the group began
  alignas(line) std::atomic<std::uint64_t> released;  // pieces of relays, since the group began
  alignas(line) std::atomic<std::uint32_t> asleep;    // ranks that sleep on a word of ours
  alignas(line) std::atomic<std::uint64_t> bell;  // rung by peers while we listen (messages.cpp)
  alignas(line) std::atomic<std::uint32_t> listening;
  alignas(
      line) std::atomic<std::uint32_t> touching;  // we use tensors of peers now (shared_relay.hpp)
  alignas(line) std::atomic<std::uint64_t> done;  // the last operation completed
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint64_t> in_place;  // operations whose tensors were read where they lie
  // Attempts to go on without those that are gone; and who goes on, by attempt.
  alignas(line) std::atomic<std::uint64_t> shrinks;
  rank_set proposed[2];
  wait_note waits;
  fault_note note;
};

// Messages from one rank to another: slots that the sender filled, and those that the reader
// emptied.
struct channel {
  alignas(line) std::atomic<std::uint64_t> put;
  alignas(line) std::atomic<std::uint64_t> taken;
};

// What a slot of a channel begins with, where it is the first of a message. lent: where in the
// sender's lending memory the message lies, plus 1; 0: behind this, and in the slots that follow.
struct alignas(64) message_head {
  comm::terms terms;
  std::uint64_t lent;
};

struct area_head {
  // Whose fault ended the group: rank + 1; 0: none. A fault is whole before its rank is named, so
  // that a rank that dies while it writes one down hides no other.
  alignas(line) std::atomic<std::uint64_t> first_fault;
  alignas(line) std::atomic<std::uint64_t> decided;  // whose proposal holds: attempt, rank + 1
};

// Whoever knows whether peers still live.
class peer_watch {
 public:
  virtual ~peer_watch() = default;
  // Adds those that are gone, with the reason; called now and then by who waits.
  virtual bool find_gone(rank_set& gone, char (&cause)[128]) noexcept = 0;
};

// The area as one rank sees it: its address differs between processes, its contents do not.
//
// A rank may write anything anywhere in it. So no number from it is an index, an offset, a count or
// a bound of a loop before it was copied and checked; one that no rank writes ends the group as a
// fault of the rank whose word it is (fault::how::corrupt).
class shared_area {
 public:
  static constexpr int slots = 2;          // of a staging place, used in turn
  static constexpr int channel_slots = 4;  // a started message that fits leaves before it is read

  // The smallest slot that every algorithm works with, and the bytes of an area: of slots of a
  // multiple of 4096 bytes.
  static std::size_t least_slot(int ranks) noexcept;
  static std::size_t slot_for(std::size_t buffer, int ranks) noexcept;  // of a rank's buffer
  static std::size_t bytes_for(int ranks, std::size_t slot_bytes) noexcept;
  // Of these the first that every collective needs; behind them are channels, for messages, the
  // places of relays, and the memory that ranks lend.
  static std::size_t needed_for(int ranks, std::size_t slot_bytes) noexcept;

  // memory: zeros, when the first rank comes.
  shared_area(void* memory, int ranks, std::size_t slot_bytes, core::sleepers who) noexcept;

  int ranks() const noexcept { return ranks_; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  std::atomic<std::uint64_t>& decided() const noexcept { return head_->decided; }
  rank_state& state(int rank) const noexcept { return states_[rank]; }
  mailbox& box(int rank, std::uint64_t sequence) const noexcept {
    return state(rank).boxes[sequence % mailbox::count];
  }
  char* payload(int rank, std::uint64_t sequence, std::int64_t bytes) const noexcept {
    return bytes <= mailbox::beside ? box(rank, sequence).payload
                                    : payloads_ + (static_cast<std::size_t>(rank) * mailbox::count +
                                                   sequence % mailbox::count) *
                                                      page;
  }
  // What an operation uses of a slot may lie `moved` bytes behind its beginning. moved_by: for one
  // that is written through the cache and uses `span` bytes of it. They move on with every step, so
  // that their lines have left the second cache of their readers, but not the third, before they
  // are written again. What fills a slot does not move: with places twice as large it took half as
  // long again. Less than a page stays where it is, in the first cache. What is written around the
  // cache does not move (moved = 0), so that its pages stay in the TLB.
  std::size_t moved_by(std::uint64_t step, std::size_t span) const noexcept {
    return span < page ? 0 : step / slots % (slot_bytes_ / span) * span;
  }
  char* slot(int rank, std::uint64_t step, std::size_t moved) const noexcept {
    return staging_ + (static_cast<std::size_t>(rank) * slots + step % slots) * slot_bytes_ + moved;
  }

  // Of messages: slots are of channel_bytes.
  std::size_t channel_bytes() const noexcept { return channel_bytes_; }
  channel& way(int from, int to) const noexcept { return channels_[from * ranks_ + to]; }
  char* channel_slot(int from, int to, std::uint64_t number) const noexcept {
    return channel_slots_ +
           (static_cast<std::size_t>(from * ranks_ + to) * channel_slots + number % channel_slots) *
               channel_bytes_;
  }
  void ring(int peer) const noexcept;  // if it listens

  // Of relays (shared_relay.hpp).
  static constexpr int relay_places = relay::places;
  std::size_t relay_bytes() const noexcept { return relay_bytes_; }  // of a place
  char* relay_place(int rank, std::uint64_t number) const noexcept {
    return relays_ + (static_cast<std::size_t>(rank) * relay_places + number) * relay_bytes_;
  }

  // Of messages that are read where they lie (lending.hpp).
  std::size_t lending_bytes() const noexcept { return lending_bytes_; }  // of a rank
  char* lending(int rank) const noexcept {
    return lending_ + static_cast<std::size_t>(rank) * lending_bytes_;
  }

  // Stores, and wakes whoever sleeps on it.
  void post(int rank, std::atomic<std::uint64_t>& word, std::uint64_t value) const noexcept {
    word.store(value, std::memory_order_seq_cst);
    if (state(rank).asleep.load(std::memory_order_seq_cst) != 0) wake(word);
  }
  void sleep(int on, std::atomic<std::uint64_t>& word, std::uint64_t wanted,
             std::int64_t timeout_ns) const noexcept;

  // rank: of the caller. The first fault stays; when it returns, one is noted.
  void note(int rank, const fault& why) const noexcept;
  bool noted(int rank, fault& why) const noexcept;
  bool is_noted() const noexcept { return head_->first_fault.load(std::memory_order_seq_cst) != 0; }
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
  std::size_t slot_bytes_, channel_bytes_, relay_bytes_, lending_bytes_;
  char* relays_;
  char* lending_;
  core::sleepers who_;
};

}  // namespace velo::comm
