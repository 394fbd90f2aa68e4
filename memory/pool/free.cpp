// The frees that no cache takes, and the refusal of memory that the caller does not own.
#include "memory/pool/free.hpp"

#include "core/failure.hpp"

namespace velo::memory {

using core::fail;
using core::text;

bool pool::free(void* memory, std::uint64_t bytes, velo_stream stream) {
  core::stream* on = queued_stream(stream, "stream");
  thread_cache* own = own_cache();
  if (on == nullptr && own != nullptr && !is_closed() &&
      (is_recorded() ? put_recorded(*own, memory, bytes) : put_cached(*own, memory, bytes)))
    return false;
  return free_slowly(own, memory, bytes, on, stream);
}

// The event is made before another thread can allocate the block again.
bool pool::put_recorded(thread_cache& own, void* memory, std::uint64_t bytes) noexcept {
  const heap& from = blocks_.heap_for(VELO_LIFETIME_DEFAULT);
  block* b = nullptr;
  if (!from.find_quickly(memory, bytes, b) || !b->is(block_state::in_use)) return false;
  const event freed = pool_history::freed(from, *b);
  if (!put_cached(own, memory, bytes)) return false;
  history_.add(freed);
  return true;
}

// It looks the block up again: in the checked mode two threads may free the same block at once.
bool pool::free_slowly(thread_cache* own, void* memory, std::uint64_t bytes, core::stream* on,
                       velo_stream handle) {
  const std::lock_guard<brief_lock> lock(lock_);
  block& b = require_in_use(memory);
  if (blocks_.is_checked()) check_block(b, bytes);
  if (own != nullptr) {
    drain_if_requested(*own);
    blocks_.empty_large(*own);
    if (!thread_cache::is_large(b.size) && own->is_full(b.size)) {
      blocks_.spill_lists(*own);
      own->limit_lists(supply_.list_bytes());
    }
  }
  const std::uint8_t purpose = b.purpose;
  event freed{};
  if (is_recorded()) freed = pool_history::freed(blocks_.heap_of(b), b);
  const bool pending = on != nullptr && blocks_.add_pending(b, *on, handle);
  if (own != nullptr) own->count_outside_lists(-static_cast<std::int64_t>(b.size));
  tally& counted = threads_.tally_of(own);
  counted.count_given(b.size, purpose);
  threads_.settle(counted, purpose);
  if (is_recorded()) {
    if (pending) freed.kind = event_kind::free_requested;
    if (pending) freed.on = handle;
    history_.add(freed);
  }
  if (!pending) blocks_.retire(b);
  return is_closed() && --left_ == 0;
}

void pool::check_block(const block& b, std::uint64_t bytes) const {
  text how("%s", "");
  if (bytes != b.asked()) {
    fail(VELO_ERR_ARGUMENT, "bytes", core::concat(b.asked(), ", as allocated"),
         core::number(bytes));
  }
  if (checked::is_damaged(blocks_.heap_of(b).memory_of(b), b, how)) {
    log_.write(VELO_LOG_ERROR, how);
    fail(VELO_ERR_ARGUMENT, "memory",
         core::concat("a block of ", b.asked(), " bytes as its owner was given it"), how);
  }
}

block& pool::require_in_use(const void* memory) const {
  block* found = blocks_.heap_of(memory).find(memory);
  if (found == nullptr || !found->is(block_state::in_use)) refuse(memory, found);
  return *found;
}

void pool::refuse(const void* memory, const block* found) const {
  const heap& from = blocks_.heap_of(memory);
  text got("memory that is not of this pool");
  if (found != nullptr) {
    got = core::concat("a block of ", found->size, " bytes that was freed before");
  } else if (const block* around = from.outside(memory) ? nullptr : from.enclosing(memory)) {
    const char* const first = from.memory_of(*around) + (around->first() - around->start);
    got = core::concat("byte ", static_cast<const char*>(memory) - first, " of a block of ",
                       around->asked(), " bytes");
  } else if (!from.outside(memory)) {
    got = text("memory that no block in use has: freed before, or never allocated");
  }
  log_.write(VELO_LOG_WARN, text("freed: %s", got.buffer));
  fail(VELO_ERR_ARGUMENT, "memory", "a block of this pool that is in use", got);
}

}  // namespace velo::memory
