// First fit over blocks that are freed in any order, and the word by which a reader frees one.
#include "comm/transport/shared/lending.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/round_up.hpp"

namespace velo::comm {
namespace {

// The word in front of a block: 1 as long as it is out.
std::atomic<std::uint32_t>& word_of(char* begin) noexcept {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(begin);
}

}  // namespace

char* lending::take(char* memory, std::size_t size, std::size_t bytes) {
  const auto is_back = [](const block& one) {
    return word_of(one.begin).load(std::memory_order_acquire) == 0;
  };
  out_.erase(std::remove_if(out_.begin(), out_.end(), is_back), out_.end());
  if (bytes > size - alignment) return nullptr;
  const std::size_t needed = alignment + core::round_up(bytes, alignment);
  char* begin = memory;
  auto at = out_.begin();
  for (; at != out_.end() && static_cast<std::size_t>(at->begin - begin) < needed; ++at)
    begin = at->begin + at->size;
  if (needed > size - static_cast<std::size_t>(begin - memory)) return nullptr;
  out_.insert(at, {begin, needed});
  word_of(begin).store(1, std::memory_order_relaxed);
  return begin + alignment;
}

void lending::give_back(char* block) noexcept {
  word_of(block - alignment).store(0, std::memory_order_release);
}

}  // namespace velo::comm
