// Blocks that go from one thread's lists to another's: each once, none beyond the bound, and all
// within the pool's reach.
#include "memory/pool/cache/transfer_cache.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "tests/memory/pool/cache_of_blocks.hpp"
#include "tests/memory/pool/pools.hpp"

using namespace velo::testing;

namespace {

// Fills the lists with blocks of that size; which.
std::set<void*> fill(cache_of_blocks& of, std::uint64_t bytes) {
  std::set<void*> all;
  while (!of.cache.is_full(block_size(bytes))) {
    block& b = of.make(bytes);
    REQUIRE(of.put(b, bytes));
    all.insert(of.memory_of(b));
  }
  return all;
}

// take(round) on one thread and then give(round) on another, by turns.
constexpr int rounds = 20;
template <class Take, class Give>
void by_turns(Take&& take, Give&& give) {
  std::atomic<int> turn{0};
  std::thread other([&] {
    for (int round = 0; round < rounds; ++round) {
      while (turn != 2 * round) std::this_thread::yield();
      take(round);
      turn = 2 * round + 1;
    }
  });
  for (int round = 0; round < rounds; ++round) {
    while (turn != 2 * round + 1) std::this_thread::yield();
    give(round);
    turn = 2 * round + 2;
  }
  other.join();
}

}  // namespace

TEST_CASE("blocks of one thread's lists serve another's requests of their size, each once") {
  for (const std::uint64_t bytes : {64ull, 4096ull, 4097ull, 64ull << 10}) {
    cache_of_blocks from, to;
    transfer_cache shared;
    const std::set<void*> given = fill(from, bytes);
    CHECK_FALSE(shared.has(bytes));
    shared.take_lists(from.cache, [](block&) { FAIL("there was room"); });
    CHECK(from.take(bytes) == nullptr);
    CHECK(shared.has(bytes));
    CHECK_FALSE(shared.has(8192));
    std::set<void*> taken;
    while (shared.fill_list(to.cache, bytes)) {
      CHECK_FALSE(shared.fill_list(to.cache, bytes));  // a list that is not empty
      while (void* memory = to.take(bytes)) REQUIRE(taken.insert(memory).second);
    }
    CHECK(taken == given);
    CHECK_FALSE(shared.has(bytes));
  }
}

TEST_CASE("a chain stays where it is when a list has no room for it") {
  cache_of_blocks from, to;
  transfer_cache shared;
  const std::set<void*> given = fill(from, 64 << 10);
  shared.take_lists(from.cache, [](block&) {});
  fill(to, 4096);
  CHECK_FALSE(shared.fill_list(to.cache, 64 << 10));
  std::set<void*> left;
  shared.empty([&](block& b) { left.insert(from.memory_of(b)); });
  CHECK(left == given);
}

TEST_CASE("what is beyond the bound goes to the heap, and nothing is lost") {
  std::vector<std::unique_ptr<cache_of_blocks>> all;
  transfer_cache shared;
  std::uint64_t given = 0, refused = 0, left = 0;
  const auto bytes_of = [](std::uint64_t& sum) { return [&sum](block& b) { sum += b.size; }; };
  for (std::uint64_t i = 0; i < 20; ++i) {
    all.push_back(std::make_unique<cache_of_blocks>());
    const std::uint64_t bytes = i % 2 == 0 ? 1000 : 20000;
    given += fill(*all.back(), bytes).size() * block_size(bytes);
    shared.take_lists(all.back()->cache, bytes_of(refused));
  }
  CHECK(refused > given - transfer_cache::most);
  shared.empty(bytes_of(left));
  CHECK(left <= transfer_cache::most);
  CHECK(left + refused == given);
  shared.empty([](block&) { FAIL("it was empty"); });
}

TEST_CASE("chains of larger blocks serve their own size, and another size drives them out") {
  cache_of_blocks of;
  transfer_cache shared;
  const auto hand_over = [&](std::uint64_t bytes, int count, std::set<void*>& refused) {
    std::set<void*> all;
    for (int i = 0; i < count; ++i) {
      block& b = of.make(bytes);
      REQUIRE(of.put(b, bytes, true));
      all.insert(of.memory_of(b));
    }
    of.cache.empty_own_large([&](block& first) {
      shared.take_large_chain(first, [&](block& b) { refused.insert(of.memory_of(b)); });
    });
    return all;
  };
  std::set<void*> refused, taken;
  const std::set<void*> given = hand_over(mib, 3, refused);
  CHECK(refused.empty());
  CHECK(shared.take_larger(mib + coarse, of.base, unit) == nullptr);
  CHECK(shared.take_larger(mib, of.base, std::uint64_t{1} << 40) == nullptr);
  block* first = shared.take_larger(mib, of.base, unit);
  REQUIRE(first != nullptr);
  CHECK(shared.take_larger(mib, of.base, unit) == nullptr);
  REQUIRE(first->left != nullptr);
  taken.insert(of.memory_of(*first));
  of.cache.fill_large(*first->left);
  while (void* memory = of.take(mib)) REQUIRE(taken.insert(memory).second);
  CHECK(taken == given);

  const std::set<void*> driven = hand_over(mib, 2, refused);
  std::uint64_t other = mib + coarse;
  while (thread_cache::large_entry_of(other) != thread_cache::large_entry_of(mib)) other += coarse;
  hand_over(other, 1, refused);
  CHECK(refused == driven);
  CHECK(shared.take_larger(mib, of.base, unit) == nullptr);
  CHECK(shared.take_larger(other, of.base, unit) != nullptr);
  const std::set<void*> beyond = hand_over(2 * transfer_cache::most, 1, refused = {});
  CHECK(refused == beyond);
  shared.empty([](block&) { FAIL("it was empty"); });
}

TEST_CASE("what waits for other threads is within the pool's reach, and a trim lets it go") {
  const live_pool pool(limited_pool(8 * mib));
  std::atomic<bool> done{false};
  std::atomic<int> ready{0};
  std::vector<char*> blocks(4 * mib / 4096);
  std::thread other([&] {
    for (char*& b : blocks) b = pool.take(4096);
    ready = 1;
    while (!done) std::this_thread::yield();
  });
  while (ready == 0) std::this_thread::yield();
  for (char* b : blocks) pool.give(b, 4096);
  char* large = pool.take(7 * mib);
  std::memset(large, 1, 7 * mib);
  pool.give(large, 7 * mib);
  for (char*& b : blocks) b = pool.take(4096);
  for (char* b : blocks) pool.give(b, 4096);
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_reserved == 0);
  CHECK(pool.stats().bytes_live == 0);
  done = true;
  other.join();
}

TEST_CASE("large blocks of one thread that another frees go round, and none is lost") {
  const live_pool pool;
  constexpr int count = 64;
  std::vector<char*> blocks(count);
  int shared = 0;
  const auto bytes_in = [](int round) -> std::uint64_t { return round % 3 == 0 ? mib : 300000; };
  by_turns(
      [&](int round) {
        for (char*& b : blocks) b = pool.take(bytes_in(round));
        shared += std::set<char*>(blocks.begin(), blocks.end()).size() != count;
      },
      [&](int round) {
        for (char* b : blocks) pool.give(b, bytes_in(round));
      });
  CHECK(shared == 0);
  const velo_pool_stats now = pool.stats();
  CHECK(now.bytes_live == 0);
  CHECK(now.allocations == rounds * count);
  CHECK(now.frees == rounds * count);
  CHECK(now.bytes_reserved_peak < (count + 4) * mib);
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_reserved == 0);
}

TEST_CASE("blocks that one thread allocates and another frees go round without the heap") {
  const live_pool pool;
  constexpr int count = 8192;
  std::vector<char*> blocks(count);
  int damaged = 0;
  by_turns(
      [&](int) {
        for (char*& b : blocks) {
          b = pool.take(512);
          *reinterpret_cast<char**>(b) = b;
        }
      },
      [&](int) {
        for (char* b : blocks) {
          damaged += *reinterpret_cast<char**>(b) != b;
          pool.give(b, 512);
        }
      });
  CHECK(damaged == 0);
  const velo_pool_stats now = pool.stats();
  CHECK(now.bytes_live == 0);
  CHECK(now.allocations == rounds * count);
  CHECK(now.frees == rounds * count);
  CHECK(now.bytes_reserved_peak < 6 * mib);
  // The second thread freed all 80 MiB that the first had allocated: a sixteenth may count twice.
  CHECK(now.bytes_peak >= 512 * count);
  CHECK(now.bytes_peak < 512 * count + 2 * mib + 80 * mib / 16);
}
