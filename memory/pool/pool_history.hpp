// The events of one pool, as the pool's parts report them.
//
// The fast path adds an event to the page of its thread; a thread without a page, and whoever
// annotates, uses the history's lock. Nothing is reported unless is_recorded(), which costs a load.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/history/history.hpp"
#include "memory/pool/cache/thread_caches.hpp"
#include "memory/pool/heap/heap.hpp"
#include "memory/pool/pool_request.hpp"

namespace velo::memory {

class pool_history {
 public:
  explicit pool_history(thread_caches& threads) noexcept : threads_(threads) {}

  bool is_recorded() const noexcept {
    return __builtin_expect(recorded_.load(std::memory_order_relaxed), 0) != 0;
  }
  void start(std::uint64_t events, const memory_levels& now);  // throws bad_alloc
  void stop() noexcept { recorded_.store(false, std::memory_order_relaxed); }
  past copy() const { return events_.copy(); }  // throws bad_alloc
  void leave(thread_cache& ended) noexcept { events_.leave(ended.page); }

  // The event of a free, for add(). It is made while the block is still the caller's: its time then
  // precedes every allocation of the block by another thread, so the events of each block are in
  // order.
  static event freed(const heap& of, const block& b) noexcept {
    event e{};
    e.ticks = core::ticks_now();
    e.address = reinterpret_cast<std::uintptr_t>(of.memory_of(b));
    e.size = b.size;
    e.requested = b.asked();
    e.kind = event_kind::freed;
    e.purpose = b.purpose.load(std::memory_order_relaxed);
    e.lifetime = b.lifetime;
    return e;
  }
  void add(const event& e) noexcept {
    thread_cache* own = threads_.find();
    if (__builtin_expect(own == nullptr || own->page == nullptr || own->page->is_full(), 0))
      return add_slowly(own, e);
    own->page->add(e);
  }

  void add_allocated(const char* memory, std::uint64_t size, const pool_request& request) noexcept;
  void add_completed(const heap& of, const block& b) noexcept;  // a free on a stream
  void add_mapped(const heap& of, std::uint64_t start, std::uint64_t bytes) noexcept;
  void add_unmapped(const heap& of, std::uint64_t start, std::uint64_t bytes) noexcept;
  void add_refused(const pool_request& request, std::uint64_t free,
                   std::uint64_t largest_hole) noexcept;
  // b: nullptr: the text is about all that follows. Throws bad_alloc.
  void annotate(const heap* of, const block* b, const char* text);

 private:
  void add_slowly(thread_cache* own, const event& e) noexcept;
  void add_reserved(event_kind kind, const heap& of, std::uint64_t start,
                    std::uint64_t bytes) noexcept;

  thread_caches& threads_;
  std::atomic<bool> recorded_{false};
  history events_;
};

}  // namespace velo::memory
