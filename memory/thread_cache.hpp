// The blocks one thread gave back and may soon take again, without a lock.
//
// Blocks up to 64 KiB lie in lists, one for each size, that only their thread touches: 1 MiB in all,
// then they go to the heap together. Larger ones lie in a few pockets, one block each, which any
// thread may empty by an exchange, so that memory the whole pool needs is never out of reach. Cost:
// a list pair moves two pointers; a pocket pair is two exchanges.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/block.hpp"
#include "memory/tally.hpp"

namespace velo::memory {

class pool;

class alignas(64) thread_cache {
 public:
  static constexpr std::uint64_t largest_listed = std::uint64_t{64} << 10;
  static constexpr std::uint64_t most_listed = std::uint64_t{1} << 20;  // bytes in lists

  thread_cache(pool& owner, std::uint32_t drains) : home(owner), drains_seen(drains) {}

  // A cached block of exactly that size, nullptr when there is none. base: address of the range.
  block* take(std::uint64_t size, std::uint64_t alignment, const char* base) noexcept {
    if (size <= largest_listed) {
      block*& list = lists_[list_of(size)];
      block* b = list;
      if (b == nullptr || !aligned(*b, alignment, base)) return nullptr;
      list = b->left;
      listed_ -= size;
      return b;
    }
    const int at = pocket_of(size);
    if (pocket_sizes_[at] != size) return nullptr;
    block* b = pockets_[at].exchange(nullptr, std::memory_order_acquire);
    if (b == nullptr || aligned(*b, alignment, base)) return b;
    pockets_[at].store(b, std::memory_order_release);
    return nullptr;
  }

  bool is_full(std::uint64_t size) const noexcept {  // its lists, for a block of that size
    return size <= largest_listed && listed_ + size > most_listed;
  }

  // Takes a block, which is `cached`; hands out the one that had its pocket, or nullptr.
  block* put(block& b) noexcept {
    if (b.size <= largest_listed) {
      block*& list = lists_[list_of(b.size)];
      b.left = list;
      list = &b;
      listed_ += b.size;
      return nullptr;
    }
    const int at = pocket_of(b.size);
    pocket_sizes_[at] = b.size;
    return pockets_[at].exchange(&b, std::memory_order_acq_rel);
  }

  // f(block&) for each block in a list; the thread itself, or after its end.
  template <class F>
  void empty_lists(F&& f) {
    if (listed_ == 0) return;
    for (block*& list : lists_) {
      while (list != nullptr) {
        block& b = *list;
        list = b.left;
        f(b);
      }
    }
    listed_ = 0;
  }
  // f(block&) for each block in a pocket; any thread.
  template <class F>
  void empty_pockets(F&& f) {
    for (std::atomic<block*>& pocket : pockets_) {
      if (pocket.load(std::memory_order_relaxed) == nullptr) continue;
      block* b = pocket.exchange(nullptr, std::memory_order_acquire);
      if (b != nullptr) f(*b);
    }
  }

  pool& home;
  tally counted;
  std::uint32_t drains_seen;     // how many calls to empty the lists this thread has followed
  thread_cache* next = nullptr;  // among those of the pool
  thread_cache* before = nullptr;

 private:
  static constexpr int fine_lists = fine / unit;
  static constexpr int list_count = fine_lists + (largest_listed - fine) / coarse;
  static constexpr int pocket_count = 8;

  static int list_of(std::uint64_t size) noexcept {
    return static_cast<int>(size <= fine ? size / unit : fine_lists + (size - fine) / coarse) - 1;
  }
  static int pocket_of(std::uint64_t size) noexcept {
    return static_cast<int>(size * 0x9e3779b97f4a7c15u >> 61);
  }
  static bool aligned(const block& b, std::uint64_t alignment, const char* base) noexcept {
    return ((reinterpret_cast<std::uintptr_t>(base) + b.start) & (alignment - 1)) == 0;
  }

  block* lists_[list_count] = {};
  std::uint64_t listed_ = 0;
  std::uint64_t pocket_sizes_[pocket_count] = {};
  std::atomic<block*> pockets_[pocket_count] = {};
};

}  // namespace velo::memory
