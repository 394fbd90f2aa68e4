// The contract of every velo_allocator: one suite, run for pools of every kind, for every adaptor
// and for stacks of them.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "tests/threads.hpp"
#include "velo/velo.h"

namespace velo::testing {

class conformance {
 public:
  explicit conformance(const velo_allocator& allocator) : a_(allocator) {}

  void run() {
    gives_aligned_memory_of_the_size();
    keeps_blocks_apart();
    says_null_for_what_cannot_be();
    serves_threads();
  }

 private:
  static constexpr velo_device cpu{VELO_DEVICE_CPU, 0};

  char* take(std::uint64_t bytes, std::uint64_t alignment = 64) {
    return static_cast<char*>(a_.allocate(a_.user, bytes, alignment, &cpu, nullptr));
  }
  void give(void* memory, std::uint64_t bytes) {
    a_.deallocate(a_.user, memory, bytes, &cpu, nullptr);
  }

  void gives_aligned_memory_of_the_size() {
    for (const std::uint64_t bytes : {1u, 63u, 64u, 4097u, 100000u, 3u << 20}) {
      for (std::uint64_t alignment = 64; alignment <= 8192; alignment *= 4) {
        char* memory = take(bytes, alignment);
        REQUIRE(memory != nullptr);
        CHECK(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0);
        std::memset(memory, 0x5a, bytes);
        give(memory, bytes);
      }
    }
  }

  void keeps_blocks_apart() {
    std::vector<std::pair<char*, std::uint64_t>> blocks;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const std::uint64_t bytes = 1 + i * i * 7;
      char* memory = take(bytes);
      REQUIRE(memory != nullptr);
      std::memset(memory, static_cast<int>(i), bytes);
      blocks.emplace_back(memory, bytes);
    }
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      give(blocks[i].first, blocks[i].second);
      blocks[i].first = take(blocks[i].second);
      REQUIRE(blocks[i].first != nullptr);
      std::memset(blocks[i].first, static_cast<int>(i), blocks[i].second);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto [memory, bytes] = blocks[i];
      const auto mark = static_cast<char>(i);
      CHECK((memory[0] == mark && memory[bytes / 2] == mark && memory[bytes - 1] == mark));
      give(memory, bytes);
    }
  }

  void says_null_for_what_cannot_be() {
    CHECK(take(~std::uint64_t{0}) == nullptr);
    CHECK(take(std::uint64_t{1} << 60) == nullptr);
    char* after = take(100);
    CHECK(after != nullptr);
    give(after, 100);
  }

  void serves_threads() {
    std::atomic<int> wrong{0};
    on_threads(4, [&](int t) {
      for (std::uint64_t i = 0; i < 300; ++i) {
        const std::uint64_t bytes = 1 + (i * 7919) % 70000;
        char* memory = take(bytes);
        if (memory == nullptr) {
          ++wrong;
          continue;
        }
        memory[0] = memory[bytes - 1] = static_cast<char>(t);
        if (i % 3 == 0) std::this_thread::yield();
        wrong += memory[0] != t || memory[bytes - 1] != t;
        give(memory, bytes);
      }
    });
    CHECK(wrong == 0);
  }

  velo_allocator a_;
};

}  // namespace velo::testing
