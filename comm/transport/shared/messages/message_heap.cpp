// A first-fit allocator whose blocks are freed in any order.
#include "comm/transport/shared/messages/message_heap.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/round_up.hpp"

namespace velo::comm {
namespace {

// The flag in front of a block: 1 until the block is freed.
std::atomic<std::uint32_t>& flag_of(char* begin) noexcept {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(begin);
}

}  // namespace

char* message_heap::allocate(char* memory, std::size_t size, std::size_t bytes) {
  const auto is_freed = [](const block& one) {
    return flag_of(one.begin).load(std::memory_order_acquire) == 0;
  };
  live_.erase(std::remove_if(live_.begin(), live_.end(), is_freed), live_.end());
  if (bytes > size - alignment) return nullptr;
  const std::size_t needed = alignment + core::round_up(bytes, alignment);
  char* begin = memory;
  auto at = live_.begin();
  for (; at != live_.end() && static_cast<std::size_t>(at->begin - begin) < needed; ++at)
    begin = at->begin + at->size;
  if (needed > size - static_cast<std::size_t>(begin - memory)) return nullptr;
  live_.insert(at, {begin, needed});
  flag_of(begin).store(1, std::memory_order_relaxed);
  return begin + alignment;
}

void message_heap::free_block(char* block) noexcept {
  flag_of(block - alignment).store(0, std::memory_order_release);
}

}  // namespace velo::comm
