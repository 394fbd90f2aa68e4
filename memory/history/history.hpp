// What has happened in a pool lately: who was given which block when, and what was said about it.
//
// Events lie in pages of 16 KiB. A thread writes to a page of its own, without a lock; a full page
// goes to the end of a line and the thread gets the one at its front, whose events are dropped,
// once those behind it hold as many events as are to be kept. What was live when the first event
// still kept happened is always known: dropped events are added up. Nothing is missing after a
// drop: an event older than the newest one dropped counts as dropped, wherever it lies.
//
// Time is in ticks (core/host/ticks.hpp), and becomes the wall clock's only when somebody reads. A
// text lies behind its event in as many places for events as it needs. Thread-safe. Cost of an
// event: reading the counter (10 ns of 17) and 48 bytes.
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
  taken,       // a block was allocated
  given,       // and freed, ready for anybody
  given_late,  // and freed on a stream that has not come so far
  passed,      // it has
  mapped,      // memory was put behind addresses
  unmapped,    // and taken away
  refused,     // a request found no memory
  noted,       // somebody said something, of a block or of all that follows
};

struct event {
  std::uint64_t ticks;
  std::uint64_t address;    // of the block; noted: 0 = of all that follows
  std::uint64_t size;       // of the block; refused: largest hole
  std::uint64_t requested;  // noted: length of the text
  velo_stream on;
  event_kind kind;
  std::uint8_t purpose;
  std::uint8_t lifetime;
  std::uint8_t places;  // that the text behind it takes
};
static_assert(sizeof(event) == 48);

// The sums that events change.
struct memory_levels {
  std::int64_t live[purposes] = {};  // bytes of blocks in use
  std::int64_t reserved = 0;

  std::int64_t all() const noexcept;
  void follow(const event& e) noexcept;
};

// Written by one thread; read by others up to `count`.
struct event_page {
  static constexpr std::uint32_t most = 341;

  std::atomic<std::uint32_t> count{0};
  event_page* next = nullptr;    // in its line
  event_page* before = nullptr;  // among those being written
  std::uint32_t texts = 0;       // places that texts take
  event events[most];

  std::uint32_t written() const noexcept { return count.load(std::memory_order_acquire) - texts; }
  bool is_full() const noexcept { return count.load(std::memory_order_relaxed) == most; }
  void add(const event& e) noexcept {
    const std::uint32_t at = count.load(std::memory_order_relaxed);
    events[at] = e;
    count.store(at + 1, std::memory_order_release);
  }
};

// Events as they lay in pages, and the order of those that count.
struct past {
  struct place {
    std::uint64_t ticks;
    std::uint32_t at;  // in `events`
  };
  std::vector<event> events;
  std::vector<place> order;
  memory_levels before;                     // the first of them
  char note_before[longest_note + 1] = "";  // of all that follows, the last one before them
  std::uint64_t dropped = 0;
  core::instant begin, end;  // on the wall clock

  void leave_out(const event& e) noexcept;  // which comes before the first

  const event& at(std::size_t number) const { return events[order[number].at]; }
  // Of a `noted` event: zero-terminated.
  static const char* text(const event& e) { return reinterpret_cast<const char*>(&e + 1); }
};

class history {
 public:
  history() = default;
  ~history();
  history(const history&) = delete;
  history& operator=(const history&) = delete;

  // Forgets what has been and keeps the last `events` from now on. Throws bad_alloc, and then
  // nothing has changed.
  void start(std::uint64_t events, const memory_levels& now);

  // A page to write to instead of a full one, which may be nullptr; nullptr: no memory is left.
  event_page* next_page(event_page* full) noexcept;
  void leave(event_page* last) noexcept;  // of a thread that ends; may be nullptr

  // For who has no page. text: of a `noted` event, at most longest_note bytes. False: no memory is
  // left, and nothing was noted.
  bool add(event e, const char* text = nullptr) noexcept;
  void lose(const event& e) noexcept;  // what happened before it counts as dropped, too

  past copy() const;  // in order; throws bad_alloc

 private:
  struct line {
    event_page* first = nullptr;
    event_page* last = nullptr;
    std::uint64_t pages = 0, events = 0;
    void put(event_page* p) noexcept;
    event_page* take() noexcept;  // nullptr: empty
  };

  event_page* exchange(event_page* full) noexcept;
  void retire(event_page& full) noexcept;
  void drop(event_page& gone) noexcept;
  void gather(const event_page& from, past& to) const;

  mutable std::mutex lock_;
  line full_, spare_;
  event_page* writing_ = nullptr;  // those of threads, and `shared_`
  event_page* shared_ = nullptr;   // of who has none
  std::uint64_t bound_ = 0;
  std::uint64_t newest_dropped_ = 0;  // ticks
  past dropped_;                      // what is known of what is no more
};

}  // namespace velo::memory
