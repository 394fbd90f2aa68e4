// The parts of a thread's cache by themselves: which list serves which size, and which thread gets
// the blocks of the large-block cache.
#include "memory/pool/cache/thread_cache.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "memory/pool/cache/transfer_cache.hpp"
#include "tests/memory/pool/cache_of_blocks.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/threads.hpp"

using namespace velo::memory;
using namespace velo::testing;

TEST_CASE("a list serves exactly the sizes that have the same block size") {
  for (std::uint64_t bytes = 1; bytes <= thread_cache::largest_listed; bytes += 61) {
    cache_of_blocks of;
    block& b = of.make(bytes);
    REQUIRE(of.put(b, bytes));
    const std::uint64_t size = block_size(bytes), step = bytes <= fine ? unit : coarse;
    INFO("bytes " << bytes);
    CHECK(of.take(size + 1) == nullptr);
    CHECK(of.take(size - step) == nullptr);
    REQUIRE(of.take(size - step + 1) == of.memory_of(b));
    REQUIRE(of.put(b, size));
    REQUIRE(of.take(size) == of.memory_of(b));
  }
}

TEST_CASE("a cache is last in, first out, and takes in what it has room for") {
  cache_of_blocks of;
  std::vector<block*> put;
  const std::uint64_t size = thread_cache::largest_listed;
  for (std::uint64_t i = 0; i < std::uint64_t{thread_cache::most_listed} / size; ++i) {
    put.push_back(&of.make(size));
    REQUIRE(of.put(*put.back(), size));
    CHECK(put.back()->is(block_state::cached));
  }
  block& more = of.make(64);
  CHECK_FALSE(of.put(more, 64));
  CHECK(more.is(block_state::in_use));
  for (auto b = put.rbegin(); b != put.rend(); ++b) {
    REQUIRE(of.take(size) == of.memory_of(**b));
    CHECK((*b)->is(block_state::in_use));
  }
  CHECK(of.take(size) == nullptr);
  CHECK(of.put(more, 64));
}

TEST_CASE("what passes the lists by, and highs that move, leave them the room they have") {
  cache_of_blocks of;
  const std::uint64_t size = thread_cache::largest_listed, large = 3 * mib;
  const auto most = static_cast<std::uint64_t>(thread_cache::most_listed) / size;
  std::vector<block*> listed;
  for (std::uint64_t i = 0; i < most; ++i) listed.push_back(&of.make(size));
  block& large_block = of.make(large);
  const auto disturb = [&](std::uint64_t round) {
    if (round % 2 == 0)
      REQUIRE(of.put(large_block, large));
    else
      REQUIRE(of.take(large) == of.memory_of(large_block));
    of.cache.counted.settle_wholly(of.all);
  };
  for (std::uint64_t i = 0; i < most; ++i) {
    REQUIRE(of.put(*listed[i], size));
    disturb(i);
  }
  block& more = of.make(size);
  CHECK(of.cache.is_full(size));
  CHECK_FALSE(of.put(more, size));
  for (std::uint64_t i = most; i-- > 0;) {
    disturb(i + 1);
    REQUIRE(of.take(size) == of.memory_of(*listed[i]));
    CHECK(of.all[purposes].published == of.cache.counted.bytes(purposes));
  }
  CHECK(of.put(more, size));
}

TEST_CASE("a wrong size, none, and an alignment that does not hold keep blocks where they are") {
  cache_of_blocks of;
  for (const std::uint64_t bytes : {std::uint64_t{1000}, 3 * mib}) {
    block& b = of.make(bytes);
    for (const std::uint64_t wrong :
         {std::uint64_t{0}, bytes - 600, bytes + 600, ~std::uint64_t{0}})
      CHECK_FALSE(of.put(b, wrong));
    b.start += unit;
    REQUIRE(of.put(b, bytes));
    CHECK(of.take(bytes, 4096) == nullptr);
    CHECK(of.take(0) == nullptr);
    CHECK(of.take(~std::uint64_t{0}) == nullptr);
    CHECK(of.take(bytes) == of.memory_of(b));
  }
}

TEST_CASE("an entry holds one block, or with several threads a chain of one size") {
  cache_of_blocks of;
  const auto most = thread_cache::most_chained / mib;
  std::vector<block*> put;
  for (std::uint64_t i = 0; i < most; ++i) {
    put.push_back(&of.make(mib));
    CHECK(of.put(*put.back(), mib) == (i == 0));  // alone
    if (i > 0) REQUIRE(of.put(*put.back(), mib, true));
  }
  block& more = of.make(mib);
  CHECK_FALSE(of.put(more, mib, true));
  std::uint64_t other = mib + coarse;
  while (thread_cache::large_entry_of(other) != thread_cache::large_entry_of(mib)) other += coarse;
  CHECK_FALSE(of.put(of.make(other), other, true));
  CHECK(of.take(other) == nullptr);
  REQUIRE(of.take(mib) == of.memory_of(*put.back()));
  put.pop_back();
  std::vector<block*> left;
  of.cache.empty_large([&](block& first) {
    CHECK(first.asked() == most - 1);
    transfer_cache::each_of(&first, [&](block& b) { left.insert(left.begin(), &b); });
  });
  CHECK(left == put);
  CHECK(of.take(mib) == nullptr);
  block& large = of.make(2 * thread_cache::most_chained);
  CHECK(of.put(large, large.size, true));
  CHECK_FALSE(of.put(of.make(large.size), large.size, true));
  CHECK(of.take(large.size) == of.memory_of(large));
}

TEST_CASE("what leaves a cache leaves it once") {
  cache_of_blocks of;
  std::set<block*> put;
  for (const std::uint64_t bytes :
       {std::uint64_t{64}, std::uint64_t{64}, std::uint64_t{5000}, mib}) {
    block& b = of.make(bytes);
    REQUIRE(of.put(b, bytes));
    put.insert(&b);
  }
  CHECK_FALSE(of.put(of.make(mib), mib));  // its entry is taken
  std::set<block*> left;
  const auto leaves = [&](block& b) { CHECK(left.insert(&b).second); };
  of.cache.empty_lists(leaves);
  CHECK(left.size() == 3);
  of.cache.empty_large(leaves);
  CHECK(left == put);
  of.cache.empty_lists(leaves);
  of.cache.empty_large(leaves);
  CHECK(of.take(64) == nullptr);
  CHECK(of.take(mib) == nullptr);
}

TEST_CASE("many threads at once: all allocate, and all comes back") {
  const live_pool pool;
  std::atomic<int> refused{0};
  on_threads(300, [&] {
    for (int i = 0; i < 20; ++i) {
      void* memory = nullptr;
      refused += pool.allocate(1000, &memory) == VELO_OK ? 0 : 1;
      refused += velo_pool_free(pool, memory, 1000, nullptr) == VELO_OK ? 0 : 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  CHECK(refused == 0);
  CHECK(pool.stats().allocations == 6000);
  CHECK(pool.stats().frees == 6000);
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_reserved == 0);
}
