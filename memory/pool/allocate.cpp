// The miss of an allocation, from the heap on; allocate.hpp lists the steps.
#include "memory/pool/allocate.hpp"

#include <cstring>

#include "core/failure.hpp"

namespace velo::memory {

using core::fail;

// The common case of allocate() after a miss: no free block elsewhere, nothing recorded. False:
// no free block of the heap is as large, or allocate() has more to do.
bool pool::take_from_heap(thread_cache& own, std::uint64_t bytes, std::uint8_t purpose,
                          void** memory) noexcept {
  heap& from = blocks_.heap_for(VELO_LIFETIME_DEFAULT);
  if (bytes - 1 >= from.range().size()) return false;
  const std::uint64_t size = block_size(bytes);
  const std::lock_guard<brief_lock> lock(lock_);
  if (fast_pages_.load(std::memory_order_relaxed) == nullptr) return false;
  drain_if_requested(own);
  blocks_.empty_large(own);
  if (blocks_.transfer().may_have(size)) return false;
  block* taken = from.take(size, unit);
  if (taken == nullptr) return false;
  supply_.count_taken(size);
  threads_.settle(own.counted, purpose);
  own.count_outside_lists(static_cast<std::int64_t>(size));
  settle_outcome(own, purpose, own.hand_out(*taken, bytes, size, purpose, nullptr));
  *memory = from.show(*taken, bytes);
  return true;
}

void* pool::allocate(const pool_request& request) {
  thread_cache* own = own_cache();
  if (own == nullptr || request.lifetime != VELO_LIFETIME_DEFAULT)
    return allocate_slowly(own, request);
  const std::uint64_t bytes = request.bytes, alignment = request.alignment;
  const bool large = thread_cache::is_large(bytes);
  void* memory = nullptr;
  const auto take = [&] {
    return settle_outcome(
        *own, request.purpose,
        large ? own->take_large(bytes, alignment, request.purpose, &memory, request.stream)
              : own->take(bytes, alignment, request.purpose, &memory, request.stream));
  };
  if (!take() && !(!large && refill_list(*own, bytes) && take()))
    return allocate_slowly(own, request);
  if (is_recorded()) history_.add_allocated(static_cast<char*>(memory), block_size(bytes), request);
  if (request.zero) std::memset(memory, 0, bytes);
  return memory;
}

// Fills an empty list from the transfer cache. False: the transfer cache has no blocks for `bytes`
// bytes.
bool pool::refill_list(thread_cache& own, std::uint64_t bytes) noexcept {
  if (bytes == 0 || !blocks_.transfer().has(bytes)) return false;
  const std::lock_guard<brief_lock> lock(lock_);
  drain_if_requested(own);
  own.limit_lists(supply_.list_bytes());
  return blocks_.transfer().fill_list(own, bytes);
}

// own: nullptr: the thread has no cache.
void* pool::allocate_slowly(thread_cache* own, const pool_request& request) {
  const std::uint64_t most = range(VELO_LIFETIME_DEFAULT).size();
  if (request.bytes > most)
    fail(VELO_ERR_MEMORY, "request.bytes", core::concat("at most ", most, " bytes"),
         core::number(request.bytes));
  std::unique_lock<brief_lock> lock(lock_);
  if (own != nullptr) {
    drain_if_requested(*own);
    blocks_.empty_large(*own);
  }
  const bool is_checked = blocks_.is_checked();
  const std::uint64_t front = is_checked ? checked::front_of(request.alignment) : 0;
  block* taken = own != nullptr ? take_from_transfer_cache(*own, request) : nullptr;
  if (taken == nullptr) {
    const std::uint64_t size =
        is_checked ? checked::size_of(front, request.bytes) : block_size(request.bytes);
    taken = supply_.obtain(request, size, lock);
  }
  heap& from = blocks_.heap_for(taken->lifetime);
  taken->front = static_cast<std::uint16_t>(front / unit);
  tally& counted = threads_.tally_of(own);
  threads_.settle(counted, request.purpose);
  taken->hand_out(request.bytes, request.purpose, request.stream);
  if (is_recorded()) history_.add_allocated(from.memory_of(*taken), taken->size, request);
  if (own != nullptr) {
    own->limit_lists(supply_.list_bytes());
    own->count_outside_lists(static_cast<std::int64_t>(taken->size));
  }
  if (counted.count_taken(taken->size, request.purpose)) threads_.publish(counted, request.purpose);
  char* memory = from.show(*taken, request.bytes);
  if (request.zero && !taken->zero) std::memset(memory, 0, request.bytes);
  taken->zero = false;
  if (is_checked) checked::arm(from.memory_of(*taken), *taken, request.zero);
  return memory;
}

// The first block of a chain of large blocks; the rest of the chain goes to the thread's cache.
block* pool::take_from_transfer_cache(thread_cache& own, const pool_request& request) noexcept {
  if (!thread_cache::is_large(request.bytes) || request.lifetime != VELO_LIFETIME_DEFAULT)
    return nullptr;
  block* first = blocks_.transfer().take_larger(block_size(request.bytes),
                                                range(request.lifetime).begin(), request.alignment);
  if (first != nullptr && first->left != nullptr) own.fill_large(*first->left);
  return first;
}

}  // namespace velo::memory
