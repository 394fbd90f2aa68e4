// A thread's cache: the blocks that it freed and may soon allocate again, without a lock.
//
// Blocks up to 64 KiB are in lists, one for each size, that only their thread touches. The lists
// hold 1 MiB in all, less in a small pool; then they go to the heap together. Larger blocks are in
// the large-block cache: a few entries, each with blocks of one size. An entry holds one block or,
// where several threads use the pool, a chain of up to 8 MiB, linked by `left`; the `requested` of
// its first block is the length. Only the cache's thread fills an entry and any thread may empty
// it, so that the whole pool can reach this memory: the thread itself by an atomic exchange, others
// by one under the pool's lock. Cost: an allocation and a free from a list move two pointers; from
// an entry they are a store and an exchange.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "memory/pool/cache/tally.hpp"
#include "memory/pool/heap/block.hpp"

namespace velo::memory {

class pool;
struct event_page;

class alignas(64) thread_cache {
 public:
  // Bytes of a block; sets the number of lists, which must fit a page (cache_table.hpp).
  static constexpr std::uint64_t largest_listed = std::uint64_t{64} << 10;
  static constexpr std::int64_t most_listed = std::int64_t{1} << 20;  // bytes in lists
  static constexpr std::int64_t least_listed = largest_listed;        // the least limit on them
  static constexpr int fine_lists = fine / unit;
  static constexpr int list_count = fine_lists + (largest_listed - fine) / coarse;
  static constexpr std::uint64_t most_chained = std::uint64_t{8} << 20;  // bytes in an entry
  static constexpr int large_entries = 8;

  // base: the first address of the heap whose blocks it holds.
  thread_cache(pool& owner, char* base, std::uint32_t drains)
      : home(&owner), drains_seen(drains), base_(base) {}

  // Sizes that each have a list of their own, and whose blocks are looked up by units.
  static bool is_small(std::uint64_t bytes) noexcept { return bytes - 1 < fine - unit; }
  // Sizes that are kept in large entries instead of lists.
  static bool is_large(std::uint64_t bytes) noexcept { return bytes > largest_listed; }

  // The result of a request: no block; a block; a block by which the thread's use exceeds the
  // published one, so the caller calls counted.publish().
  enum class outcome : std::uint8_t { none, taken, higher };

  // Takes a block of at least `bytes` bytes out of a list, counts it, and sets `memory` to its
  // address. None: the list is empty, or such blocks are in large entries.
  __attribute__((always_inline)) outcome take(std::uint64_t bytes, std::uint64_t alignment,
                                              std::uint64_t purpose, void** memory,
                                              velo_stream on = nullptr) noexcept {
    const std::uint64_t last = bytes - 1;  // 0 bytes: larger than every list
    std::uint64_t number = last / unit, size = (number + 1) * unit;
    if (__builtin_expect(last >= fine, 0)) {
      if (last >= largest_listed) return outcome::none;
      number = list_above(last);
      size = (last / coarse + 1) * coarse;
    }
    block* b = tops_[number];
    if (__builtin_expect(b == nullptr || !aligned(memory_[number], alignment), 0))
      return outcome::none;
    *memory = memory_[number];
    block* next = b->left;
    tops_[number] = next;
    if (next != nullptr) memory_[number] = base_ + next->start;
    return hand_out(*b, bytes, size, purpose, on);
  }

  // Puts a block in use into a list and counts it as freed. False: it was not allocated for `bytes`
  // bytes, the lists are full, or it belongs into a large entry. The list follows from `bytes`
  // instead of the block, so that nothing waits for the block's description.
  __attribute__((always_inline)) bool put(block& b, void* memory, std::uint64_t bytes) noexcept {
    const std::uint64_t last = bytes - 1;
    std::uint64_t number = last / unit, size = (number + 1) * unit;
    if (__builtin_expect(last >= fine, 0)) {
      if (last >= largest_listed) return false;
      number = list_above(last);
      size = (last / coarse + 1) * coarse;
    }
    if (__builtin_expect(b.size != size, 0)) return false;
    if (__builtin_expect(is_full(size), 0)) return false;
    b.become(block_state::cached);
    b.left = tops_[number];
    tops_[number] = &b;
    memory_[number] = static_cast<char*>(memory);
    counted.count_given(size, b.purpose.load(std::memory_order_relaxed));
    return true;
  }

  // The same with a large entry.
  outcome take_large(std::uint64_t bytes, std::uint64_t alignment, std::uint8_t purpose,
                     void** memory, velo_stream on = nullptr) noexcept {
    const std::uint64_t size = block_size(bytes);
    const int at = large_entry_of(size);
    if (large_sizes_[at] != size || large_chains_[at].load(std::memory_order_relaxed) == nullptr)
      return outcome::none;
    block* b = large_chains_[at].exchange(nullptr, std::memory_order_acquire);
    if (b == nullptr) return outcome::none;
    if (!aligned(base_ + b->start, alignment)) {
      large_chains_[at].store(b, std::memory_order_release);
      return outcome::none;
    }
    if (b->left != nullptr) large_chains_[at].store(b->left, std::memory_order_release);
    *memory = base_ + b->start;
    count_outside_lists(static_cast<std::int64_t>(size));
    return hand_out(*b, bytes, size, purpose, on);
  }
  // chained: the entry may hold more than one block.
  bool put_large(block& b, std::uint64_t bytes, bool chained) noexcept {
    const std::uint64_t size = block_size(bytes);
    const int at = large_entry_of(size);
    if (b.size != size || size <= largest_listed) return false;
    block* next = large_chains_[at].load(std::memory_order_relaxed);
    if (next != nullptr) {
      if (!chained || large_sizes_[at] != size) return false;
      next = large_chains_[at].exchange(nullptr, std::memory_order_acquire);
    }
    const std::uint64_t count = next != nullptr ? next->asked() + 1 : 1;
    if (count > 1 && count * size > most_chained) {
      large_chains_[at].store(next, std::memory_order_release);
      return false;
    }
    b.left = next;
    b.requested.store(count, std::memory_order_relaxed);
    large_sizes_[at] = size;
    large_filled_ |= 1u << at;
    counted.count_given(size, b.purpose.load(std::memory_order_relaxed));
    count_outside_lists(-static_cast<std::int64_t>(size));
    b.become(block_state::cached);
    large_chains_[at].store(&b, std::memory_order_release);
    return true;
  }

  // Makes a block the caller's.
  __attribute__((always_inline)) outcome hand_out(block& b, std::uint64_t bytes, std::uint64_t size,
                                                  std::uint64_t purpose, velo_stream on) noexcept {
    b.hand_out(bytes, static_cast<std::uint8_t>(purpose), on);
    return __builtin_expect(counted.count_taken(size, purpose), 0) ? outcome::higher
                                                                   : outcome::taken;
  }

  bool is_full(std::uint64_t size) const noexcept {  // the lists, for a block of that size
    return room() < static_cast<std::int64_t>(size);
  }
  // Counts bytes that were allocated (freed: below 0) without the lists.
  void count_outside_lists(std::int64_t bytes) noexcept { full_at_ += bytes; }

  // Limits the lists to so many bytes, least_listed to most_listed; blocks beyond that stay until
  // the lists are emptied. Called by the thread itself.
  void limit_lists(std::int64_t bytes) noexcept {
    full_at_ += most_ - bytes;
    most_ = bytes;
  }

  // Calls f(block&) for each block of the lists. Called by the thread itself, or after its end.
  template <class F>
  void empty_lists(F&& f) {
    if (room() == most_) return;
    block* filled[list_count];  // gathered without a branch: which lists are filled is random
    int count = 0;
    for (block*& top : tops_) {
      filled[count] = top;
      count += top != nullptr;
      top = nullptr;
    }
    for (int i = 0; i < count; ++i) {
      for (block *b = filled[i], *next = nullptr; b != nullptr; b = next) {
        next = b->left;
        f(*b);
      }
    }
    full_at_ += room() - most_;
  }
  // Splits the lists into chains of up to 64 blocks or 512 KiB and calls f(list, first, count) for
  // each. Called by the thread itself.
  template <class F>
  void empty_lists_in_chains(F&& f) {
    if (room() == most_) return;
    for (std::uint64_t number = 0; number < list_count; ++number) {
      block* first = std::exchange(tops_[number], nullptr);
      while (first != nullptr) {
        block* last = first;
        const std::uint64_t most = std::clamp<std::uint64_t>((512 << 10) / first->size, 1, 64);
        std::uint64_t count = 1;
        for (; count < most && last->left != nullptr; ++count) last = last->left;
        block* rest = std::exchange(last->left, nullptr);
        f(number, *first, count);
        first = rest;
      }
    }
    full_at_ += room() - most_;
  }
  // Moves a chain of `bytes` bytes into an empty list. False: the lists are full, or the list is
  // not empty.
  bool adopt(std::uint64_t number, block& first, std::uint64_t bytes) noexcept {
    if (is_full(bytes) || tops_[number] != nullptr) return false;
    full_at_ += static_cast<std::int64_t>(bytes);
    tops_[number] = &first;
    memory_[number] = base_ + first.start;
    return true;
  }
  static std::uint64_t list_for(std::uint64_t bytes) noexcept {  // at most largest_listed
    const std::uint64_t last = bytes - 1;
    return last < fine ? last / unit : list_above(last);
  }

  // Puts a chain of large blocks into their entry, which is empty.
  void fill_large(block& first) noexcept {
    const int at = large_entry_of(first.size);
    large_sizes_[at] = first.size;
    large_filled_ |= 1u << at;
    large_chains_[at].store(&first, std::memory_order_release);
  }
  static int large_entry_of(std::uint64_t size) noexcept {
    return static_cast<int>(size * 0x9e3779b97f4a7c15u >> 61);
  }

  static bool aligned(const char* memory, std::uint64_t alignment) noexcept {
    return alignment <= unit || (reinterpret_cast<std::uintptr_t>(memory) & (alignment - 1)) == 0;
  }

  // Empties the large entries and calls f(first) for the chain of each. Any thread may call it,
  // with the pool's lock.
  template <class F>
  void empty_large(F&& f) {
    for (std::atomic<block*>& chain : large_chains_) {
      if (chain.load(std::memory_order_relaxed) == nullptr) continue;
      block* b = chain.exchange(nullptr, std::memory_order_acquire);
      if (b != nullptr) f(*b);
    }
  }
  // The same, called by the thread itself with the pool's lock, which keeps all others out: it
  // needs no exchange.
  template <class F>
  void empty_own_large(F&& f) {
    for (; large_filled_ != 0; large_filled_ &= large_filled_ - 1) {
      std::atomic<block*>& chain = large_chains_[__builtin_ctz(large_filled_)];
      block* b = chain.load(std::memory_order_relaxed);
      if (b == nullptr) continue;
      chain.store(nullptr, std::memory_order_relaxed);
      f(*b);
    }
  }

  pool* home;  // nullptr: wiped, in a child of a fork
  tally counted;
  std::uint32_t drains_seen;     // how many requests to drain the lists this thread has followed
  thread_cache* next = nullptr;  // among those of the pool
  thread_cache* before = nullptr;
  event_page* page = nullptr;  // the page of the pool's history that this thread writes to

 private:
  static std::uint64_t list_above(std::uint64_t last) noexcept {
    return last / coarse + (fine_lists - fine / coarse);
  }

  // Bytes for which the lists still have room. Each free moves bytes from use to the lists, so the
  // lists are full when the bytes in use have sunk to full_at_, and need no counter of their own.
  // Blocks that bypass the lists shift full_at_. counted.bytes(purposes): the use for all of them.
  std::int64_t room() const noexcept { return counted.bytes(purposes) - full_at_; }

  std::int64_t most_ = most_listed;
  std::int64_t full_at_ = -most_listed;
  char* const base_;
  block* tops_[list_count] = {};
  char* memory_[list_count] = {};   // addresses of the tops: an allocation waits for one load
  std::uint32_t large_filled_ = 0;  // bits: entries filled since they were emptied
  std::uint64_t large_sizes_[large_entries] = {};
  std::atomic<block*> large_chains_[large_entries] = {};
};

}  // namespace velo::memory
