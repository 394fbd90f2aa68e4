// Who comes to stand at which place, and who leaves it.
#include "memory/pool/cache/cache_table.hpp"

#include <sys/mman.h>

#include <initializer_list>
#include <new>

namespace velo::memory {

cache_table::cache_table() noexcept {
  constexpr std::uint64_t bytes = count * sizeof(cache_place);
  if (memory_.reserve(bytes) && madvise(memory_.data(), bytes, MADV_WIPEONFORK) == 0)
    places_ = static_cast<cache_place*>(memory_.data());
}

thread_cache* cache_table::add(pool& owner, char* base, std::uint32_t drains,
                               const void* handle) noexcept {
  if (places_ == nullptr) return nullptr;
  const std::uint64_t self = this_thread();
  for (const std::uint64_t number : {first_of(self), second_of(self)}) {
    cache_place& here = places_[number];
    std::uint64_t nobody = 0;
    if (here.key.compare_exchange_strong(nobody, key_of(self, handle), std::memory_order_acquire))
      return new (here.cache) thread_cache(owner, base, drains);
  }
  return nullptr;
}

bool cache_table::remove(thread_cache& ended) noexcept {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(&ended) - reinterpret_cast<std::uintptr_t>(places_);
  if (places_ == nullptr || offset >= count * sizeof(cache_place)) return false;
  places_[offset / sizeof(cache_place)].key.store(0, std::memory_order_release);
  return true;
}

}  // namespace velo::memory
