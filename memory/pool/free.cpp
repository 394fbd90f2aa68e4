// Giving back, what is said of memory that is not the caller's to give, and the end of the pool.
#include <utility>

#include "core/handle/failure.hpp"
#include "core/handle/host_call.hpp"
#include "memory/pool/pool.hpp"

namespace velo::memory {

using core::fail;
using core::text;

namespace {

unsigned long long number(std::uint64_t n) noexcept {
  return n;
}

}  // namespace

// A sink of the host's may hold points at which a thread is cancelled; the pool has no others.
void pool::report(velo_log_level level, const char* line) const noexcept {
  const core::uncancelled here;
  logging_.store(pthread_self(), std::memory_order_relaxed);
  log_.write(level, "pool", "%s", line);
  logging_.store(0, std::memory_order_relaxed);
}

void pool::refuse_in_log() {
  fail(VELO_ERR_STATE, "pool", "a call from outside of the pool's log function", "one from within");
}

bool pool::free(void* memory, std::uint64_t bytes, velo_stream stream) {
  core::stream* on = queued_stream(stream, "stream");
  thread_cache* mine = cache_here();
  if (on == nullptr && mine != nullptr && !is_closed() &&
      (is_recorded() ? give_and_note(*mine, memory, bytes) : give_at_hand(*mine, memory, bytes)))
    return false;
  return free_slowly(mine, memory, bytes, on, stream);
}

// Looks again: in the checked mode two threads may free the same block at the same time.
bool pool::free_slowly(thread_cache* mine, void* memory, std::uint64_t bytes, core::stream* on,
                       velo_stream handle) {
  const std::lock_guard<brief_lock> lock(lock_);
  block* b = heap_of(memory).find(memory);
  if (b == nullptr || !b->is(block_state::in_use)) refuse(memory, b);
  if (checked_) check_block(*b, bytes);
  if (mine != nullptr) {
    follow_drain(*mine);
    empty_own_pockets(*mine);
    if (!is_large(b->size) && mine->is_full(b->size)) empty_full_lists(*mine);
  }
  const std::uint8_t purpose = b->purpose;
  const std::uint64_t requested = b->asked();
  const bool waits = on != nullptr && streams_[b->lifetime].add(*b, *on, handle);
  tally& counted = mine != nullptr ? mine->counted : shared_;
  if (mine != nullptr) mine->pass_lists_by(-static_cast<std::int64_t>(b->size));
  counted.count_given(b->size, purpose);
  counted.settle(purpose, levels_);
  if (is_recorded())
    note_given(*b, requested, purpose, waits ? handle : nullptr, core::ticks_now());
  if (!waits) retire(*b);
  return is_closed() && --left_ == 0;
}

void pool::empty_full_lists(thread_cache& mine) noexcept {
  const auto to_heap = [&](block& listed) { give(listed); };
  several() ? exchange_.take_lists(mine, to_heap) : mine.empty_lists(to_heap);
  mine.limit_lists(most_in_lists());
}

void pool::give_chain(block& first) noexcept {
  exchange::each_of(&first, [&](block& b) { give(b); });
}

void pool::empty_own_pockets(thread_cache& mine) noexcept {
  mine.empty_own_pockets([&](block& first) {
    if (!several()) return give_chain(first);
    exchange_.take_pocket(first, [&](block& b) { give(b); });
  });
}

// Into the heap, in the checked mode by way of the quarantine.
void pool::retire(block& b) noexcept {
  if (!checked_) return give(b);
  checked::poison(heaps_[b.lifetime].memory_of(b), b);
  quarantine_.add(b);
  while (quarantine_.is_over()) release_quarantined(*quarantine_.take());
}

void pool::release_quarantined(block& oldest) noexcept {
  text how("%s", "");
  if (checked::is_poison_damaged(heaps_[oldest.lifetime].memory_of(oldest), oldest, how)) {
    ++damaged_;
    report(VELO_LOG_ERROR, how);
  }
  give(oldest);
}

void pool::check_block(const block& b, std::uint64_t bytes) const {
  text how("%s", "");
  if (bytes != b.asked()) {
    fail(VELO_ERR_ARGUMENT, "bytes", text("%llu, as allocated", number(b.asked())),
         text("%llu", number(bytes)));
  }
  if (checked::is_damaged(heaps_[b.lifetime].memory_of(b), b, how)) {
    report(VELO_LOG_ERROR, how);
    fail(VELO_ERR_ARGUMENT, "memory",
         text("a block of %llu bytes as its owner was given it", number(b.asked())), how);
  }
}

void pool::refuse(const void* memory, const block* found) const {
  const heap& from = heap_of(memory);
  text got("memory that is not of this pool");
  if (found != nullptr) {
    got = text("a block of %llu bytes that was freed before", number(found->size));
  } else if (const block* around = from.outside(memory) ? nullptr : from.enclosing(memory)) {
    got = text("byte %lld of a block of %llu bytes",
               static_cast<long long>(static_cast<const char*>(memory) - from.memory_of(*around)) -
                   static_cast<long long>(around->first() - around->start),
               number(around->asked()));
  } else if (!from.outside(memory)) {
    got = text("memory that no block in use has: freed before, or never allocated");
  }
  report(VELO_LOG_WARN, text("freed: %s", got.buffer));
  fail(VELO_ERR_ARGUMENT, "memory", "a block of this pool that is in use", got);
}

// Everything but the blocks in use goes back to the system, addresses too.
bool pool::close() noexcept {
  const std::lock_guard<brief_lock> lock(lock_);
  set_apart(apart_.load(std::memory_order_relaxed) | closed);
  const usage left = in_use();
  left_ = left.blocks;
  if (left_ == 0) return true;
  report(VELO_LOG_WARN, text("destroyed with %llu blocks, %llu bytes, in use", number(left.blocks),
                             number(left.requested)));
  take_in();
  for (thread_cache* c = caches_; c != nullptr; c = c->next)
    c->empty_lists([&](block& b) { give(b); });
  while (block* oldest = quarantine_.take()) release_quarantined(*oldest);
  trim_free(free_bytes(), nullptr);
  for (heap& h : heaps_) h.close();
  return false;
}

}  // namespace velo::memory
