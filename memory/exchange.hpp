// Blocks of listed sizes on their way from threads that free more than they allocate to threads that
// allocate more than they free.
//
// A list that overflows is left here in chains, and a thread whose list is empty takes one: a lock
// for many blocks, and none of them is merged with its neighbors to be cut again. Only where several
// threads use the pool, so that a single one leaves the heap nothing but whole blocks; no more than
// 16 MiB in all, and everything goes to the heap before that grows. A chain is linked by `left`, its
// first block holds how many it has in `requested` and leads to the next chain by `right`. With the
// pool's lock, but for has(). Cost: of a chain, two loads and two stores.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/thread_cache.hpp"

namespace velo::memory {

class exchange {
 public:
  static constexpr std::uint64_t most = std::uint64_t{16} << 20;

  bool has(std::uint64_t bytes) const noexcept {  // a chain of blocks for so many
    return chains_[thread_cache::list_for(bytes)].load(std::memory_order_relaxed) != nullptr;
  }

  // Takes in what a thread's lists hold, as far as there is room; the rest is for f(block&).
  template <class F>
  void take_lists(thread_cache& from, F&& f) {
    from.empty_lists_in_chains([&](std::uint64_t number, block& first, std::uint64_t count) {
      const std::uint64_t bytes = first.size * count;
      if (bytes_ + bytes > most) {
        each_of(&first, f);
        return;
      }
      bytes_ += bytes;
      first.requested.store(count, std::memory_order_relaxed);
      first.right = chains_[number].load(std::memory_order_relaxed);
      chains_[number].store(&first, std::memory_order_relaxed);
    });
  }

  // A chain for an empty list of that thread that serves so many bytes. False: there is none, or no
  // room for it.
  bool fill_list(thread_cache& of, std::uint64_t bytes) noexcept {
    const std::uint64_t number = thread_cache::list_for(bytes);
    block* first = chains_[number].load(std::memory_order_relaxed);
    if (first == nullptr) return false;
    const std::uint64_t all = first->size * first->asked();
    if (!of.adopt(number, *first, all)) return false;
    chains_[number].store(first->right, std::memory_order_relaxed);
    bytes_ -= all;
    return true;
  }

  // f(block&) for each block.
  template <class F>
  void empty(F&& f) {
    if (bytes_ == 0) return;
    for (std::atomic<block*>& chain : chains_) {
      block* first = chain.exchange(nullptr, std::memory_order_relaxed);
      while (first != nullptr) {
        block* next = first->right;
        each_of(first, f);
        first = next;
      }
    }
    bytes_ = 0;
  }

 private:
  template <class F>
  static void each_of(block* first, F&& f) {
    while (first != nullptr) {
      block& b = *first;
      first = b.left;
      f(b);
    }
  }

  std::atomic<block*> chains_[thread_cache::list_count] = {};
  std::uint64_t bytes_ = 0;
};

}  // namespace velo::memory
