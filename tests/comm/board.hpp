// Numbers that the children of a test share with it.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>

namespace velo::testing {

inline void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

struct board {
  board() {
    void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    at = new (memory) std::atomic<std::int64_t>[16]();
  }
  ~board() { munmap(at, 4096); }
  board(const board&) = delete;
  void await(int place, std::int64_t least) const {
    while (at[place] < least) pause_ms(1);
  }
  std::atomic<std::int64_t>* at;
};

}  // namespace velo::testing
