// A thread takes a page of the table and leaves it again.
#include "memory/pool/cache/cache_table.hpp"

#include <sys/mman.h>

#include <initializer_list>
#include <new>

namespace velo::memory {

cache_table::cache_table() noexcept {
  constexpr std::uint64_t bytes = count * sizeof(cache_page);
  if (memory_.reserve(bytes) && madvise(memory_.data(), bytes, MADV_WIPEONFORK) == 0)
    pages_ = static_cast<cache_page*>(memory_.data());
}

thread_cache* cache_table::add(pool& owner, char* base, std::uint32_t drains,
                               const void* handle) noexcept {
  if (pages_ == nullptr) return nullptr;
  const std::uint64_t self = this_thread();
  for (const std::uint64_t number : {first_of(self), second_of(self)}) {
    cache_page& here = pages_[number];
    std::uint64_t free = 0;
    if (here.key.compare_exchange_strong(free, key_of(self, handle), std::memory_order_acquire))
      return new (here.cache) thread_cache(owner, base, drains);
  }
  return nullptr;
}

bool cache_table::remove(thread_cache& ended) noexcept {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(&ended) - reinterpret_cast<std::uintptr_t>(pages_);
  if (pages_ == nullptr || offset >= count * sizeof(cache_page)) return false;
  pages_[offset / sizeof(cache_page)].key.store(0, std::memory_order_release);
  return true;
}

}  // namespace velo::memory
