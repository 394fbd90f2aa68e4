// Making each kind of event, and storing it.
#include "memory/pool/pool_history.hpp"

#include <new>

namespace velo::memory {
namespace {

event make(event_kind kind, const char* memory, std::uint64_t size) noexcept {
  event e{};
  e.ticks = core::ticks_now();
  e.address = reinterpret_cast<std::uintptr_t>(memory);
  e.size = size;
  e.requested = size;
  e.kind = kind;
  return e;
}

event of_block(event_kind kind, const heap& of, const block& b) noexcept {
  event e = make(kind, of.memory_of(b), b.size);
  e.purpose = b.purpose.load(std::memory_order_relaxed);
  e.lifetime = b.lifetime;
  return e;
}

}  // namespace

void pool_history::start(std::uint64_t events, const memory_levels& now) {
  events_.start(events, now);
  recorded_.store(true, std::memory_order_relaxed);
}

void pool_history::add_slowly(thread_cache* own, const event& e) noexcept {
  if (own == nullptr) {
    if (!events_.add(e)) events_.drop(e);
    return;
  }
  own->page = events_.next_page(own->page);
  if (own->page != nullptr) return own->page->add(e);
  events_.drop(e);
}

void pool_history::add_allocated(const char* memory, std::uint64_t size,
                                 const pool_request& request) noexcept {
  event e = make(event_kind::allocated, memory, size);
  e.requested = request.bytes;
  e.on = request.stream;
  e.purpose = request.purpose;
  e.lifetime = request.lifetime;
  add(e);
}

// The requested bytes are no longer known, so the event has the block's size.
void pool_history::add_completed(const heap& of, const block& b) noexcept {
  add(of_block(event_kind::free_completed, of, b));
}

void pool_history::add_reserved(event_kind kind, const heap& of, std::uint64_t start,
                                std::uint64_t bytes) noexcept {
  event e = make(kind, of.range().begin() + start, bytes);
  e.lifetime = of.lifetime();
  add(e);
}

void pool_history::add_mapped(const heap& of, std::uint64_t start, std::uint64_t bytes) noexcept {
  add_reserved(event_kind::mapped, of, start, bytes);
}

void pool_history::add_unmapped(const heap& of, std::uint64_t start, std::uint64_t bytes) noexcept {
  add_reserved(event_kind::unmapped, of, start, bytes);
}

void pool_history::add_refused(const pool_request& request, std::uint64_t free,
                               std::uint64_t largest_hole) noexcept {
  event e = make(event_kind::refused, nullptr, largest_hole);
  e.address = free;
  e.requested = request.bytes;
  e.lifetime = request.lifetime;
  add(e);
}

void pool_history::annotate(const heap* of, const block* b, const char* text) {
  event e{};
  e.kind = event_kind::annotated;
  if (b != nullptr) e = of_block(e.kind, *of, *b);
  if (!events_.add(e, text)) throw std::bad_alloc();
}

}  // namespace velo::memory
