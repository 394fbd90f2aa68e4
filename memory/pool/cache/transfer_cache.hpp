// A transfer cache: blocks that one thread freed are handed in chains to other threads that
// allocate.
//
// A list that overflows moves here in chains, and a thread whose list is empty takes a chain: one
// lock for many blocks, and none of them is merged with its neighbors and cut again. Chains of
// large blocks move here too, of a few sizes at a time: a new size evicts an old one. The cache is
// used where several threads use the pool; a single thread's blocks merge in the heap. It holds at
// most 16 MiB, and is emptied before the heap grows. A chain is linked by `left`; its first block
// has the chain's length in `requested` and the next chain in `right`. All calls take the pool's
// lock, except has(). Cost: two loads and two stores for a chain.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/pool/cache/thread_cache.hpp"

namespace velo::memory {

class transfer_cache {
 public:
  static constexpr std::uint64_t most = std::uint64_t{16} << 20;

  bool has(std::uint64_t bytes) const noexcept {  // a chain of blocks for so many bytes
    return chains_[thread_cache::list_for(bytes)].load(std::memory_order_relaxed) != nullptr;
  }

  bool may_have(std::uint64_t size) const noexcept {  // a chain of blocks of that size
    return bytes_ != 0 &&
           chains_[size <= thread_cache::largest_listed ? thread_cache::list_for(size)
                                                        : number_of_larger(size)]
                   .load(std::memory_order_relaxed) != nullptr;
  }

  // Takes the blocks of a thread's lists, as far as there is room; calls f(block&) for the rest.
  template <class F>
  void take_lists(thread_cache& from, F&& f) {
    from.empty_lists_in_chains([&](std::uint64_t number, block& first, std::uint64_t count) {
      first.requested.store(count, std::memory_order_relaxed);
      add(number, first, f);
    });
  }
  // The same with a chain of large blocks.
  template <class F>
  void take_large_chain(block& first, F&& f) {
    const std::uint64_t number = number_of_larger(first.size);
    const block* there = chains_[number].load(std::memory_order_relaxed);
    if (there != nullptr && there->size != first.size) empty(chains_[number], f);
    add(number, first, f);
  }

  // Fills the thread's empty list for so many bytes with a chain. False: there is none, or the
  // lists have no room for it.
  bool fill_list(thread_cache& of, std::uint64_t bytes) noexcept {
    const std::uint64_t number = thread_cache::list_for(bytes);
    block* first = chains_[number].load(std::memory_order_relaxed);
    if (first == nullptr) return false;
    if (!of.adopt(number, *first, bytes_of(*first))) return false;
    remove(number, *first);
    return true;
  }
  // A chain of large blocks of that size whose first block has that alignment; nullptr: there is
  // none.
  block* take_larger(std::uint64_t size, const char* base, std::uint64_t alignment) noexcept {
    const std::uint64_t number = number_of_larger(size);
    block* first = chains_[number].load(std::memory_order_relaxed);
    if (first == nullptr || first->size != size ||
        !thread_cache::aligned(base + first->start, alignment))
      return nullptr;
    remove(number, *first);
    return first;
  }

  // Calls f(block&) for each block.
  template <class F>
  void empty(F&& f) {
    if (bytes_ == 0) return;
    for (std::atomic<block*>& chains : chains_) empty(chains, f);
  }

  // Calls f(block&) for each block of a chain.
  template <class F>
  static void each_of(block* first, F&& f) {
    while (first != nullptr) {
      block& b = *first;
      first = b.left;
      f(b);
    }
  }

 private:
  static std::uint64_t number_of_larger(std::uint64_t size) noexcept {
    return thread_cache::list_count + thread_cache::large_entry_of(size);
  }
  static std::uint64_t bytes_of(const block& first) noexcept { return first.size * first.asked(); }

  template <class F>
  void add(std::uint64_t number, block& first, F&& f) {
    if (bytes_ + bytes_of(first) > most) {
      each_of(&first, f);
      return;
    }
    bytes_ += bytes_of(first);
    first.right = chains_[number].load(std::memory_order_relaxed);
    chains_[number].store(&first, std::memory_order_relaxed);
  }
  void remove(std::uint64_t number, block& first) noexcept {
    chains_[number].store(first.right, std::memory_order_relaxed);
    bytes_ -= bytes_of(first);
  }
  template <class F>
  void empty(std::atomic<block*>& chains, F&& f) {
    block* first = chains.exchange(nullptr, std::memory_order_relaxed);
    while (first != nullptr) {
      block* next = first->right;
      bytes_ -= bytes_of(*first);
      each_of(first, f);
      first = next;
    }
  }

  std::atomic<block*> chains_[thread_cache::list_count + thread_cache::large_entries] = {};
  std::uint64_t bytes_ = 0;
};

}  // namespace velo::memory
