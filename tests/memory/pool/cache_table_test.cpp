// How threads find their caches: each its own, by its handle alone, and none in a child of a fork.
#include "memory/pool/cache/cache_table.hpp"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/child_process.hpp"
#include "tests/memory/pool/cache_of_blocks.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/structs.hpp"
#include "tests/threads.hpp"

using namespace velo::testing;

namespace {

// A table for caches of a pool that nobody looks at.
struct table_alone : cache_table {
  cache_of_blocks of;

  thread_cache* add(const void* handle) {
    return cache_table::add(*of.cache.home, of.base, 0, handle);
  }
};

const void* handle_of_generation(std::uintptr_t number) {
  return reinterpret_cast<const void*>(number << 47 | 0x7f0000001000);
}

}  // namespace

TEST_CASE("a thread finds its own cache or none, and a place is free again after its end") {
  table_alone table;
  CHECK(table.find(nullptr) == nullptr);
  thread_cache* mine = table.add(nullptr);
  REQUIRE(mine != nullptr);
  CHECK(table.find(nullptr) == mine);
  CHECK(cache_table::find_first(table.pages(), nullptr) == mine);
  CHECK(cache_table::find_first(nullptr, nullptr) == nullptr);
  for (int i = 0; i < 50; ++i) {
    std::thread([&] {
      CHECK(table.find(nullptr) == nullptr);
      thread_cache* own = table.add(nullptr);
      CHECK((own != nullptr && own != mine));
      if (own == nullptr) return;
      CHECK(table.find(nullptr) == own);
      CHECK(table.remove(*own));
      CHECK(table.find(nullptr) == nullptr);
    }).join();
  }
  CHECK(table.find(nullptr) == mine);
  CHECK(table.remove(*mine));
  CHECK(table.find(nullptr) == nullptr);
  CHECK_FALSE(table.remove(table.of.cache));  // which stands nowhere
}

TEST_CASE("a cache is found by the handle it serves and by no other") {
  table_alone table;
  const void* served = handle_of_generation(7);
  thread_cache* mine = table.add(served);
  REQUIRE(mine != nullptr);
  CHECK(table.find(served) == mine);
  for (const std::uintptr_t other : {0, 6, 8, 0xffff})
    CHECK(table.find(handle_of_generation(other)) == nullptr);
  CHECK(table.find(nullptr) == nullptr);
}

TEST_CASE("nobody is found in a child of a fork") {
  table_alone table;
  REQUIRE(table.add(nullptr) != nullptr);
  CHECK(holds_in_child([&] { return table.find(nullptr) == nullptr; }));
  CHECK(table.find(nullptr) != nullptr);
}

TEST_CASE("more threads than places: each finds its own cache or none") {
  table_alone table;
  std::mutex lock;
  std::condition_variable changed;
  int arrived = 0, found = 0, wrong = 0;
  constexpr int count = 400;
  on_threads(count, [&] {
    std::unique_lock<std::mutex> held(lock);
    thread_cache* own = table.add(nullptr);
    ++arrived;
    changed.notify_all();
    changed.wait(held, [&] { return arrived == count; });
    found += own != nullptr ? 1 : 0;
    wrong += table.find(nullptr) != own ? 1 : 0;
    wrong += own != nullptr && !table.remove(*own) ? 1 : 0;
    wrong += table.find(nullptr) != nullptr ? 1 : 0;
  });
  CHECK(wrong == 0);
  CHECK(found > count / 4);
  CHECK(found <= 256);
}

TEST_CASE("a handle of a destroyed pool is refused, also when another pool took its place") {
  void* memory = nullptr;
  const velo_pool_request request = request_of(64);
  velo_pool gone = nullptr;
  {
    const live_pool pool;
    gone = pool;
    pool.give(pool.take(64), 64);
  }
  CHECK(velo_pool_allocate(gone, &request, &memory) == VELO_ERR_HANDLE);
  for (int round = 0; round < 40; ++round) {  // one at a time: pools reserve many addresses
    const live_pool later;
    REQUIRE(velo_pool_allocate(later, &request, &memory) == VELO_OK);
    CHECK(velo_pool_free(gone, memory, 64, nullptr) == VELO_ERR_HANDLE);
    CHECK(velo_pool_free(later, memory, 64, nullptr) == VELO_OK);
    CHECK(velo_pool_allocate(gone, &request, &memory) == VELO_ERR_HANDLE);
  }
}
