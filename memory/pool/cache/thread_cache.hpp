// The blocks one thread gave back and may soon take again, without a lock.
//
// Blocks up to 64 KiB lie in lists, one for each size, that only their thread touches: 1 MiB in
// all, of a small pool less, then they go to the heap together. Larger ones lie in a few pockets,
// each of one size: one block, or where several threads use the pool a chain of up to 8 MiB, linked
// by `left`, of which the first holds in `requested` how many it has. Their thread alone fills a
// pocket and any thread may empty it, so that memory the whole pool needs is never out of reach:
// the thread itself by an exchange, others by one under the pool's lock. Cost: a list pair moves
// two pointers; a pocket pair is a store and an exchange.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "memory/pool/heap/block.hpp"
#include "memory/pool/cache/tally.hpp"

namespace velo::memory {

class pool;
struct event_page;

class alignas(64) thread_cache {
 public:
  static constexpr std::uint64_t largest_listed = std::uint64_t{64} << 10;
  static constexpr std::int64_t most_listed = std::int64_t{1} << 20;  // bytes in lists
  static constexpr std::int64_t least_listed = largest_listed;        // a limit lets so many in
  static constexpr int fine_lists = fine / unit;
  static constexpr int list_count = fine_lists + (largest_listed - fine) / coarse;
  static constexpr std::uint64_t most_chained = std::uint64_t{8} << 20;  // bytes in a pocket
  static constexpr int pocket_count = 8;

  // base: of the heap whose blocks it takes in.
  thread_cache(pool& owner, char* base, std::uint32_t drains)
      : home(&owner), drains_seen(drains), base_(base) {}

  // Blocks of which each has its own list by units, and that are looked up by units.
  static bool is_small(std::uint64_t bytes) noexcept { return bytes - 1 < fine - unit; }

  // What came of a request: nothing; a block; one by which the thread uses more than it published,
  // so that counted.publish() is to follow.
  enum class outcome : std::uint8_t { none, taken, higher };

  // A block for so many bytes out of a list, counted as taken, and where it lies. None: there is
  // none, or such blocks are in pockets.
  __attribute__((always_inline)) outcome take(std::uint64_t bytes, std::uint64_t alignment,
                                              std::uint64_t purpose, void** memory,
                                              velo_stream on = nullptr) noexcept {
    const std::uint64_t last = bytes - 1;  // 0 bytes: more than any list or pocket is for
    std::uint64_t number = last / unit, size = (number + 1) * unit;
    if (__builtin_expect(last >= fine, 0)) {
      if (last >= largest_listed) return outcome::none;
      number = list_above(last), size = (last / coarse + 1) * coarse;
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

  // Takes a block in use into a list, counted as given. False: it was not allocated for so many
  // bytes, there is no room for it, or it belongs into a pocket. The list follows from `bytes` and
  // not from the block, so that nothing waits for the block's description.
  __attribute__((always_inline)) bool put(block& b, void* memory, std::uint64_t bytes) noexcept {
    const std::uint64_t last = bytes - 1;
    std::uint64_t number = last / unit, size = (number + 1) * unit;
    if (__builtin_expect(last >= fine, 0)) {
      if (last >= largest_listed) return false;
      number = list_above(last), size = (last / coarse + 1) * coarse;
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

  // The same with a pocket.
  outcome take_from_pocket(std::uint64_t bytes, std::uint64_t alignment, std::uint8_t purpose,
                           void** memory, velo_stream on = nullptr) noexcept {
    const std::uint64_t size = block_size(bytes);
    const int at = pocket_of(size);
    if (pocket_sizes_[at] != size || pockets_[at].load(std::memory_order_relaxed) == nullptr)
      return outcome::none;
    block* b = pockets_[at].exchange(nullptr, std::memory_order_acquire);
    if (b == nullptr) return outcome::none;
    if (!aligned(base_ + b->start, alignment)) {
      pockets_[at].store(b, std::memory_order_release);
      return outcome::none;
    }
    if (b->left != nullptr) pockets_[at].store(b->left, std::memory_order_release);
    *memory = base_ + b->start;
    pass_lists_by(static_cast<std::int64_t>(size));
    return hand_out(*b, bytes, size, purpose, on);
  }
  bool put_into_pocket(block& b, std::uint64_t bytes, bool chained) noexcept {
    const std::uint64_t size = block_size(bytes);
    const int at = pocket_of(size);
    if (b.size != size || size <= largest_listed) return false;
    block* next = pockets_[at].load(std::memory_order_relaxed);
    if (next != nullptr) {
      if (!chained || pocket_sizes_[at] != size) return false;
      next = pockets_[at].exchange(nullptr, std::memory_order_acquire);
    }
    const std::uint64_t count = next != nullptr ? next->asked() + 1 : 1;
    if (count > 1 && count * size > most_chained) {
      pockets_[at].store(next, std::memory_order_release);
      return false;
    }
    b.left = next;
    b.requested.store(count, std::memory_order_relaxed);
    pocket_sizes_[at] = size;
    pocketed_ |= 1u << at;
    counted.count_given(size, b.purpose.load(std::memory_order_relaxed));
    pass_lists_by(-static_cast<std::int64_t>(size));
    b.become(block_state::cached);
    pockets_[at].store(&b, std::memory_order_release);
    return true;
  }

  // A block becomes the caller's.
  __attribute__((always_inline)) outcome hand_out(block& b, std::uint64_t bytes, std::uint64_t size,
                                                  std::uint64_t purpose, velo_stream on) noexcept {
    b.hand_out(bytes, static_cast<std::uint8_t>(purpose), on);
    return __builtin_expect(counted.count_taken(size, purpose), 0) ? outcome::higher
                                                                   : outcome::taken;
  }

  bool is_full(std::uint64_t size) const noexcept {  // its lists, for a block of that size
    return room() < static_cast<std::int64_t>(size);
  }
  // Tells of bytes taken, or less than 0: given, that did not come out of a list or go into one.
  void pass_lists_by(std::int64_t bytes) noexcept { full_at_ += bytes; }

  // Lets lists hold so many bytes, least_listed to most_listed; what they hold beyond stays until
  // they are emptied. By the thread itself.
  void limit_lists(std::int64_t bytes) noexcept {
    full_at_ += most_ - bytes;
    most_ = bytes;
  }

  // f(block&) for each block in a list; the thread itself, or after its end.
  template <class F>
  void empty_lists(F&& f) {
    if (room() == most_) return;
    block* filled[list_count];  // first gathered, since which lists are is as good as random
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
  // f(list, first, count) for chains of up to 64 blocks or 512 KiB that the lists fall into; the
  // thread itself.
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
  // Makes a chain of so many bytes an empty list's. False: there is no room, or the list is not
  // empty.
  bool adopt(std::uint64_t number, block& first, std::uint64_t bytes) noexcept {
    if (is_full(bytes) || tops_[number] != nullptr) return false;
    full_at_ += static_cast<std::int64_t>(bytes);
    tops_[number] = &first;
    memory_[number] = base_ + first.start;
    return true;
  }
  static std::uint64_t list_for(std::uint64_t bytes) noexcept {  // of a size that is listed
    const std::uint64_t last = bytes - 1;
    return last < fine ? last / unit : list_above(last);
  }

  // Makes a chain that of a pocket of its own, which was emptied.
  void fill_pocket(block& first) noexcept {
    const int at = pocket_of(first.size);
    pocket_sizes_[at] = first.size;
    pocketed_ |= 1u << at;
    pockets_[at].store(&first, std::memory_order_release);
  }
  static int pocket_of(std::uint64_t size) noexcept {
    return static_cast<int>(size * 0x9e3779b97f4a7c15u >> 61);
  }

  static bool aligned(const char* memory, std::uint64_t alignment) noexcept {
    return alignment <= unit || (reinterpret_cast<std::uintptr_t>(memory) & (alignment - 1)) == 0;
  }

  // f(first) for the chain in each pocket; any thread, with the pool's lock.
  template <class F>
  void empty_pockets(F&& f) {
    for (std::atomic<block*>& pocket : pockets_) {
      if (pocket.load(std::memory_order_relaxed) == nullptr) continue;
      block* b = pocket.exchange(nullptr, std::memory_order_acquire);
      if (b != nullptr) f(*b);
    }
  }
  // The same by the thread itself, with the pool's lock, against which nobody else can be at them.
  template <class F>
  void empty_own_pockets(F&& f) {
    for (; pocketed_ != 0; pocketed_ &= pocketed_ - 1) {
      std::atomic<block*>& pocket = pockets_[__builtin_ctz(pocketed_)];
      block* b = pocket.load(std::memory_order_relaxed);
      if (b == nullptr) continue;
      pocket.store(nullptr, std::memory_order_relaxed);
      f(*b);
    }
  }

  pool* home;  // nullptr: wiped, in a child of a fork
  tally counted;
  std::uint32_t drains_seen;     // how many calls to empty the lists this thread has followed
  thread_cache* next = nullptr;  // among those of the pool
  thread_cache* before = nullptr;
  event_page* page = nullptr;  // of the pool's history, to which this thread writes

 private:
  static std::uint64_t list_above(std::uint64_t last) noexcept {
    return last / coarse + (fine_lists - fine / coarse);
  }

  // Bytes that the lists may still take in. What the thread gives back goes into them and what it
  // takes comes out of them, but for what passes them by: they are full at a level of its use.
  std::int64_t room() const noexcept { return counted.bytes(purposes) - full_at_; }

  std::int64_t most_ = most_listed;
  std::int64_t full_at_ = -most_listed;
  char* const base_;
  block* tops_[list_count] = {};
  char* memory_[list_count] = {};  // of the tops, so that an allocation waits for one load
  std::uint32_t pocketed_ = 0;     // bits: pockets that were filled since they were emptied
  std::uint64_t pocket_sizes_[pocket_count] = {};
  std::atomic<block*> pockets_[pocket_count] = {};
};

}  // namespace velo::memory
