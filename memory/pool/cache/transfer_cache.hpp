// Blocks on their way from threads that free more than they allocate to threads that allocate more
// than they free.
//
// A list that overflows is left here in chains, and a thread whose list is empty takes one: a lock
// for many blocks, and none of them is merged with its neighbors to be cut again. Chains of pockets
// are left here too, of a few sizes at a time: another size drives one out. Only where several
// threads use the pool, so that a single one leaves the heap nothing but whole blocks; no more than
// 16 MiB in all, and everything goes to the heap before that grows. A chain is linked by `left`,
// its first block holds how many it has in `requested` and leads to the next chain by `right`. With
// the pool's lock, but for has(). Cost: of a chain, two loads and two stores.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/pool/cache/thread_cache.hpp"

namespace velo::memory {

class exchange {
 public:
  static constexpr std::uint64_t most = std::uint64_t{16} << 20;

  bool has(std::uint64_t bytes) const noexcept {  // a chain of blocks for so many
    return chains_[thread_cache::list_for(bytes)].load(std::memory_order_relaxed) != nullptr;
  }

  bool may_have(std::uint64_t size) const noexcept {  // a chain of blocks of that size
    return bytes_ != 0 &&
           chains_[size <= thread_cache::largest_listed ? thread_cache::list_for(size)
                                                        : number_of_larger(size)]
                   .load(std::memory_order_relaxed) != nullptr;
  }

  // Takes in what a thread's lists hold, as far as there is room; the rest is for f(block&).
  template <class F>
  void take_lists(thread_cache& from, F&& f) {
    from.empty_lists_in_chains([&](std::uint64_t number, block& first, std::uint64_t count) {
      first.requested.store(count, std::memory_order_relaxed);
      add(number, first, f);
    });
  }
  // The same with the chain of a pocket.
  template <class F>
  void take_pocket(block& first, F&& f) {
    const std::uint64_t number = number_of_larger(first.size);
    const block* there = chains_[number].load(std::memory_order_relaxed);
    if (there != nullptr && there->size != first.size) empty(chains_[number], f);
    add(number, first, f);
  }

  // A chain for an empty list of that thread that serves so many bytes. False: there is none, or no
  // room for it.
  bool fill_list(thread_cache& of, std::uint64_t bytes) noexcept {
    const std::uint64_t number = thread_cache::list_for(bytes);
    block* first = chains_[number].load(std::memory_order_relaxed);
    if (first == nullptr) return false;
    if (!of.adopt(number, *first, bytes_of(*first))) return false;
    remove(number, *first);
    return true;
  }
  // A chain of larger blocks of that size, the first of them so aligned; nullptr: there is none.
  block* take_larger(std::uint64_t size, const char* base, std::uint64_t alignment) noexcept {
    const std::uint64_t number = number_of_larger(size);
    block* first = chains_[number].load(std::memory_order_relaxed);
    if (first == nullptr || first->size != size ||
        !thread_cache::aligned(base + first->start, alignment))
      return nullptr;
    remove(number, *first);
    return first;
  }

  // f(block&) for each block.
  template <class F>
  void empty(F&& f) {
    if (bytes_ == 0) return;
    for (std::atomic<block*>& chains : chains_) empty(chains, f);
  }

  // f(block&) for each block of a chain.
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
    return thread_cache::list_count + thread_cache::pocket_of(size);
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

  std::atomic<block*> chains_[thread_cache::list_count + thread_cache::pocket_count] = {};
  std::uint64_t bytes_ = 0;
};

}  // namespace velo::memory
