// A thread's cache by itself, with blocks made for it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "memory/pool/cache/thread_cache.hpp"
#include "velo/pool.h"

namespace velo::testing {

using namespace velo::memory;

// A cache whose blocks lie at multiples of 2 MiB of addresses that nobody touches.
struct cache_of_blocks {
  alignas(64) char owner[64] = {};  // never looked at
  char* const base = reinterpret_cast<char*>(std::uintptr_t{1} << 40);
  thread_cache cache{reinterpret_cast<pool&>(owner), base, 0};
  level all[levels];
  std::vector<std::unique_ptr<block>> blocks;

  block& make(std::uint64_t bytes) {
    blocks.push_back(std::make_unique<block>());
    block& b = *blocks.back();
    b.start = (blocks.size() - 1) << 28;
    b.size = block_size(bytes);
    b.hand_out(bytes, VELO_PURPOSE_GRADIENT);
    return b;
  }
  char* memory_of(const block& b) const { return base + b.start; }
  bool put(block& b, std::uint64_t bytes, bool chained = false) {
    return bytes > thread_cache::largest_listed ? cache.put_large(b, bytes, chained)
                                                : cache.put(b, memory_of(b), bytes);
  }
  void* take(std::uint64_t bytes, std::uint64_t alignment = unit) {
    void* memory = nullptr;
    const auto came = bytes > thread_cache::largest_listed
                          ? cache.take_large(bytes, alignment, 0, &memory)
                          : cache.take(bytes, alignment, 0, &memory);
    if (came == thread_cache::outcome::higher) cache.counted.publish(all, 0);
    return memory;
  }
};

}  // namespace velo::testing
