// Lifetimes are kept apart: blocks of VELO_LIFETIME_LONG and of the default lifetime lie in
// different heaps, whichever way they are allocated, so that memory that stays splits no hole of
// memory that comes and goes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/memory/held_stream.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/random.hpp"

using namespace velo::testing;

namespace {

// The addresses between the first and the last byte of all blocks of one lifetime.
struct span {
  std::uintptr_t first = UINTPTR_MAX, last = 0;

  void add(const char* memory, std::uint64_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    first = std::min(first, at);
    last = std::max(last, at + bytes);
  }
  bool meets(const span& other) const { return first < other.last && other.first < last; }
};

struct kept_block {
  char* memory;
  std::uint64_t bytes;
  velo_lifetime lifetime;
};

// Sizes for lists, for the large-block cache and for neither, so that caches, streams and the heap
// all serve some.
constexpr std::uint64_t sizes[] = {64, 4096, 48 * kib, 200 * kib, mib, 3 * mib};

}  // namespace

TEST_CASE("blocks of different lifetimes share no stretch of addresses, however they come") {
  const auto kind = GENERATE(as<velo_pool_kind>{}, VELO_POOL_ORDINARY, VELO_POOL_HUGE,
                             VELO_POOL_SHARED, VELO_POOL_LOCKED);
  const auto checked = GENERATE(0, 1);
  const auto limit = GENERATE(std::uint64_t{0}, 96 * mib);
  held_stream stream;
  const live_pool pool(pool_desc(kind, limit, checked));
  random_source32 random(44);
  span spans[2];
  std::vector<kept_block> blocks;
  for (int i = 0; i < 600; ++i) {
    const auto lifetime = static_cast<velo_lifetime>(random.below(2));
    const std::uint64_t bytes = random.pick(sizes);
    const velo_stream on = random.one_in(4) ? stream.handle : nullptr;
    void* memory = nullptr;
    if (pool.stats().bytes_live < 60 * mib &&
        pool.allocate(bytes, &memory, on, lifetime) == VELO_OK) {
      blocks.push_back({static_cast<char*>(memory), bytes, lifetime});
      spans[lifetime].add(blocks.back().memory, bytes);
    }
    while (blocks.size() > 40 || (!blocks.empty() && random.one_in(3))) {
      std::swap(blocks[random.below(blocks.size())], blocks.back());
      pool.give(blocks.back().memory, blocks.back().bytes,
                random.one_in(8) ? stream.handle : nullptr);
      blocks.pop_back();
    }
    if (i == 300) stream.release();
  }
  for (const kept_block& b : blocks) pool.give(b.memory, b.bytes);
  INFO("kind " << kind << ", checked " << checked << ", limit " << limit);
  CHECK(spans[0].last != 0);
  CHECK(spans[1].last != 0);
  CHECK(!spans[0].meets(spans[1]));
}

TEST_CASE("memory that stays splits no hole of memory that comes and goes") {
  const live_pool pool;
  constexpr std::uint64_t piece = 256 * kib, pieces = 64;
  std::vector<char*> stays;
  for (int step = 0; step < 4; ++step) {
    std::vector<char*> goes;
    for (std::uint64_t i = 0; i < pieces; ++i) {
      goes.push_back(pool.take(piece));
      stays.push_back(pool.take(piece / 2, nullptr, VELO_LIFETIME_LONG));
    }
    for (char* memory : goes) pool.give(memory, piece);
    const std::uint64_t before = pool.stats().bytes_reserved;
    char* whole = pool.take(piece * pieces);
    CHECK(pool.stats().bytes_reserved == before);
    pool.give(whole, piece * pieces);
  }
  for (char* memory : stays) pool.give(memory, piece / 2);
}

TEST_CASE("what another thread left for others serves its own lifetime alone") {
  const live_pool pool;
  span goes, stays;
  const std::uint64_t bytes = GENERATE(4 * kib, mib);
  const auto blocks = static_cast<int>(4 * mib / bytes);
  pool.give(pool.take(64), 64);  // this thread has a cache, too
  std::thread other([&] {
    pool.give(pool.take(20 * mib), 20 * mib);  // more than is kept for others: the heap's
    std::vector<char*> taken;
    for (int i = 0; i < blocks; ++i) taken.push_back(pool.take(bytes));
    for (char* memory : taken) {
      goes.add(memory, bytes);
      pool.give(memory, bytes);
    }
    pool.give(pool.take(5 * mib), 5 * mib);  // a slow call leaves its large blocks to others
    std::vector<char*> again;
    for (int i = 0; i < blocks; ++i) {
      char* memory = pool.take(bytes, nullptr, VELO_LIFETIME_LONG);
      stays.add(memory, bytes);
      again.push_back(memory);
    }
    for (char* memory : again) pool.give(memory, bytes);
  });
  other.join();
  CHECK(!goes.meets(stays));
}
