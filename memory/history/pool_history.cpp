// What a pool tells its history, and what it shows of itself.
//
// The fast path tells of blocks into a page of its thread; what has none, and what is said, goes by
// way of the history's lock.
#include "core/handle/failure.hpp"
#include "memory/pool/pool.hpp"

namespace velo::memory {

using core::fail;

namespace {

event of_block(event_kind kind, const char* memory, std::uint64_t size) noexcept {
  event e{};
  e.address = reinterpret_cast<std::uintptr_t>(memory);
  e.size = size;
  e.kind = kind;
  return e;
}

}  // namespace

void pool::note(const event& e) noexcept {
  thread_cache* mine = table_.find(handle_);
  if (mine == nullptr && has_key_) mine = static_cast<thread_cache*>(pthread_getspecific(key_));
  if (mine == nullptr) {
    if (!history_.add(e)) history_.lose(e);
    return;
  }
  if (mine->page == nullptr || mine->page->is_full()) mine->page = history_.next_page(mine->page);
  if (mine->page != nullptr) return mine->page->add(e);
  history_.lose(e);
}

void pool::note_taken(const char* memory, std::uint64_t size, const wanted& what) noexcept {
  event e = of_block(event_kind::taken, memory, size);
  e.ticks = core::ticks_now();
  e.requested = what.bytes;
  e.on = what.on;
  e.purpose = what.purpose;
  e.lifetime = what.lifetime;
  note(e);
}

void pool::note_given(const block& b, std::uint64_t requested, std::uint8_t purpose, velo_stream on,
                      std::uint64_t ticks) noexcept {
  event e = of_block(on != nullptr ? event_kind::given_late : event_kind::given,
                     heaps_[b.lifetime].memory_of(b), b.size);
  e.ticks = ticks;
  e.requested = requested;
  e.on = on;
  e.purpose = purpose;
  e.lifetime = b.lifetime;
  note(e);
}

// The time is that before the block can be somebody else's, as the history says of each block.
bool pool::give_and_note(thread_cache& mine, void* memory, std::uint64_t bytes) noexcept {
  block* b = nullptr;
  if (!heaps_[VELO_LIFETIME_DEFAULT].find_quickly(memory, bytes, b)) return false;
  if (!b->is(block_state::in_use)) return false;
  const std::uint64_t ticks = core::ticks_now();
  const std::uint8_t purpose = b->purpose.load(std::memory_order_relaxed);
  const std::uint64_t requested = b->asked();
  event e = of_block(event_kind::given, static_cast<char*>(memory), b->size);
  if (!give_at_hand(mine, memory, bytes)) return false;
  e.ticks = ticks;
  e.requested = requested;
  e.purpose = purpose;
  note(e);
  return true;
}

void pool::note_passed(const block& b) noexcept {
  event e = of_block(event_kind::passed, heaps_[b.lifetime].memory_of(b), b.size);
  e.ticks = core::ticks_now();
  e.requested = e.size;  // how much was asked for is known no more
  e.purpose = b.purpose;
  e.lifetime = b.lifetime;
  note(e);
}

void pool::note_reserved(const heap& of, std::uint64_t start, std::uint64_t bytes,
                         bool mapped) noexcept {
  event e = of_block(mapped ? event_kind::mapped : event_kind::unmapped, of.range().begin() + start,
                     bytes);
  e.ticks = core::ticks_now();
  e.requested = bytes;
  e.lifetime = static_cast<std::uint8_t>(&of - heaps_);
  note(e);
}

void pool::note_refused(std::uint64_t bytes, std::uint8_t lifetime) noexcept {
  event e{};
  e.kind = event_kind::refused;
  e.ticks = core::ticks_now();
  e.address = free_bytes();
  e.size = largest_hole();
  e.requested = bytes;
  e.lifetime = lifetime;
  note(e);
}

void pool::record(std::uint64_t events) {
  const std::lock_guard<brief_lock> lock(lock_);
  if (events == 0) return set_apart(apart_.load(std::memory_order_relaxed) & ~recorded);
  memory_levels now;
  for (int p = 0; p < purposes; ++p) now.live[p] = sum([p](const tally& t) { return t.bytes(p); });
  now.reserved = static_cast<std::int64_t>(reserved());
  history_.start(events, now);
  set_apart(apart_.load(std::memory_order_relaxed) | recorded);
}

void pool::say(const void* memory, const char* text) {
  event e{};
  e.kind = event_kind::noted;
  const std::lock_guard<brief_lock> lock(lock_);
  if (memory != nullptr) {
    const block* b = heap_of(memory).find(memory);
    if (b == nullptr || !b->is(block_state::in_use)) refuse(memory, b);
    e = of_block(e.kind, heaps_[b->lifetime].memory_of(*b), b->size);
    e.purpose = b->purpose;
    e.lifetime = b->lifetime;
  }
  if (!is_recorded())
    fail(VELO_ERR_STATE, "pool", "a pool whose history is recorded",
         "one without: velo_pool_record");
  if (!history_.add(e, text)) throw std::bad_alloc();
}

snapshot pool::look() {
  snapshot seen;
  const std::lock_guard<brief_lock> lock(lock_);
  take_in_passed();
  seen.taken = core::instant::now(CLOCK_REALTIME);
  seen.events = history_.copy();
  fill_with_lock(seen.stats);
  seen.limit = limit_;
  seen.checked = checked_;
  for (const heap& h : heaps_) {
    const block* before = nullptr;
    for (const block* b = h.first(); b != nullptr; before = b, b = b->after) {
      const block_state state = b->state.load(std::memory_order_relaxed);
      if (state == block_state::uncommitted) continue;
      const auto address = reinterpret_cast<std::uintptr_t>(h.memory_of(*b));
      if (before == nullptr || before->is(block_state::uncommitted))
        seen.segments.push_back({address, 0, seen.blocks.size(), 0, b->lifetime});
      seen.blocks.push_back({address, b->size, b->asked(), state, b->purpose});
      seen.segments.back().size += b->size;
      ++seen.segments.back().count;
    }
  }
  return seen;
}

}  // namespace velo::memory
