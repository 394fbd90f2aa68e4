// The latest events of a pool: allocations and frees, memory that came and went, the host's notes.
//
// Events are kept in pages of 16 KiB. Each thread writes to its own page, without a lock. A full
// page goes to the end of a queue, and the thread gets the page at the front of the queue, whose
// events are dropped, once the pages behind it hold as many events as are to be kept. Dropped
// events are summed up, so that the bytes in use before the first event kept are always known. The
// events kept are complete: an event older than the newest dropped one counts as dropped too.
//
// Time is in ticks (core/host/ticks.hpp), converted to the wall clock's when the history is read.
// An event's text is stored in the event entries that follow it. Thread-safe: the history's lock
// may be taken while the pool's lock is held, never the other way round. Cost of an event: reading
// the counter (10 ns of 17) and 48 bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/host/ticks.hpp"
#include "memory/pool/cache/tally.hpp"
#include "velo/types.h"

namespace velo::memory {

inline constexpr std::uint32_t longest_note = 255;  // bytes

enum class event_kind : std::uint8_t {
  allocated,
  freed,           // at once
  free_requested,  // freed on a stream that has not reached this point
  free_completed,  // the stream has reached it
  mapped,          // memory was put behind addresses
  unmapped,        // and taken away
  refused,         // a request found no memory
  annotated,       // the host's text about a block, or about all that follows
};

struct event {
  std::uint64_t ticks;
  std::uint64_t address;    // of the block; annotated: 0 = about all that follows
  std::uint64_t size;       // of the block; refused: largest hole
  std::uint64_t requested;  // annotated: length of the text
  velo_stream on;
  event_kind kind;
  std::uint8_t purpose;
  std::uint8_t lifetime;
  std::uint8_t text_entries;  // that the text after it takes
};
static_assert(sizeof(event) == 48);

// The sums that events change.
struct memory_levels {
  std::int64_t live[purposes] = {};  // bytes of blocks in use
  std::int64_t reserved = 0;

  std::int64_t all() const noexcept;
  void follow(const event& e) noexcept;
};

// Written by one thread; other threads read the first `count` events.
struct event_page {
  static constexpr std::uint32_t most = 341;

  std::atomic<std::uint32_t> count{0};
  event_page* next = nullptr;    // in its queue
  event_page* before = nullptr;  // among those being written
  std::uint32_t texts = 0;       // entries that texts take
  event events[most];

  std::uint32_t written() const noexcept { return count.load(std::memory_order_acquire) - texts; }
  bool is_full() const noexcept { return count.load(std::memory_order_relaxed) == most; }
  void add(const event& e) noexcept {
    const std::uint32_t at = count.load(std::memory_order_relaxed);
    events[at] = e;
    count.store(at + 1, std::memory_order_release);
  }
};

// A copy of the history: events as they were in pages, and the order of those that are kept.
struct past {
  struct position {
    std::uint64_t ticks;
    std::uint32_t at;  // in `events`
  };
  std::vector<event> events;
  std::vector<position> order;
  memory_levels before;                     // before the first event kept
  char note_before[longest_note + 1] = "";  // the last dropped text about all that follows
  std::uint64_t dropped = 0;
  core::instant begin, end;  // on the wall clock

  void drop(const event& e) noexcept;  // one before the first

  const event& at(std::size_t number) const { return events[order[number].at]; }
  // The zero-terminated text of an `annotated` event.
  static const char* text(const event& e) { return reinterpret_cast<const char*>(&e + 1); }
};

class history {
 public:
  history() = default;
  ~history();
  history(const history&) = delete;
  history& operator=(const history&) = delete;

  // Forgets all events and from now on keeps the last `events`. If it throws bad_alloc, nothing has
  // changed.
  void start(std::uint64_t events, const memory_levels& now);

  // Returns a page to write to, in exchange for a full page or nullptr; nullptr: no memory is left.
  event_page* next_page(event_page* full) noexcept;
  void leave(event_page* last) noexcept;  // the page of a thread that ends, or nullptr

  // Adds an event to the page that threads without a page share. text: of an `annotated` event, at
  // most longest_note bytes. False: no memory is left, and nothing was added.
  bool add(event e, const char* text = nullptr) noexcept;
  // Counts an event that found no page, and every earlier event, as dropped.
  void drop(const event& e) noexcept;

  past copy() const;  // in order; throws bad_alloc

 private:
  struct queue {
    event_page* first = nullptr;
    event_page* last = nullptr;
    std::uint64_t pages = 0, events = 0;
    void put(event_page* p) noexcept;
    event_page* take() noexcept;  // nullptr: empty
  };

  event_page* replace(event_page* full) noexcept;
  void retire(event_page& full) noexcept;
  void drop(event_page& gone) noexcept;
  void gather(const event_page& from, past& to) const;

  mutable std::mutex lock_;
  queue full_, spare_;
  event_page* writing_ = nullptr;  // the pages of threads, and `shared_`
  event_page* shared_ = nullptr;
  std::uint64_t bound_ = 0;
  std::uint64_t newest_dropped_ = 0;  // ticks
  past dropped_;                      // sums of the dropped events
};

}  // namespace velo::memory
