// What a pool's counters say of each other, while requests are often refused: live is at most
// reserved, reserved at most the limit, nothing wraps, and the process has no more pages than that.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "memory/pools.hpp"

using namespace velo::test;

namespace {

constexpr std::uint64_t limit = 64 * mib;
constexpr std::uint64_t slack = 32 * mib;  // of the process: descriptions, heaps of other threads

std::uint64_t resident() {
  std::ifstream of("/proc/self/statm");
  std::uint64_t all = 0, pages = 0;
  of >> all >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

bool is_sound(const velo_pool_stats& s) {
  return s.bytes_live <= s.bytes_reserved && s.bytes_reserved <= limit &&
         s.bytes_reserved_peak <= limit && s.bytes_rounding <= s.bytes_live &&
         s.bytes_live + s.bytes_pending + s.bytes_cached == s.bytes_reserved &&
         s.bytes_largest_hole <= s.bytes_reserved;
}

struct held {
  char* memory;
  std::uint64_t bytes;
  char mark;
};

std::uint64_t size_of_mix(std::mt19937& random) {
  const std::uint64_t part = random() % 100;
  const std::uint64_t most = part < 60 ? 4 * kib : part < 85 ? 256 * kib : 4 * mib;
  return 1 + random() % most;
}

struct run {
  const live_pool& pool;
  std::mt19937 random;
  int trim_every;
  bool looks;  // at the counters after each step, which are exact where one thread works
  std::vector<held> blocks;
  std::uint64_t refused = 0;
  bool sound = true, whole = true, known = true;

  void step(int number) {
    if (!blocks.empty() && random() % 100 < 45) {
      give(random() % blocks.size());
    } else {
      take();
    }
    if (trim_every != 0 && number % trim_every == 0) velo_pool_trim(pool, 0, nullptr);
    if (!looks) return;
    velo_pool_stats now = VELO_POOL_STATS_INIT;
    sound = velo_pool_get_stats(pool, &now) == VELO_OK && is_sound(now) && sound;
  }
  void take() {
    velo_pool_request request = VELO_POOL_REQUEST_INIT;
    request.bytes = size_of_mix(random);
    request.lifetime = random() % 8 == 0 ? VELO_LIFETIME_LONG : VELO_LIFETIME_DEFAULT;
    request.zero = random() % 4 == 0 ? 1 : 0;
    void* memory = nullptr;
    const velo_status status = velo_pool_allocate(pool, &request, &memory);
    if (status != VELO_OK) {
      known = known && status == VELO_ERR_MEMORY;
      ++refused;
      if (!blocks.empty()) give(random() % blocks.size());
      return;
    }
    auto* bytes = static_cast<char*>(memory);
    if (request.zero != 0)
      whole = whole && bytes[0] == 0 && std::memcmp(bytes, bytes + 1, request.bytes - 1) == 0;
    const char mark = static_cast<char>(1 + random() % 120);
    std::memset(bytes, mark, request.bytes);
    blocks.push_back({bytes, request.bytes, mark});
  }
  void give(std::uint64_t which) {
    const held b = blocks[which];
    blocks[which] = blocks.back();
    blocks.pop_back();
    whole = whole && b.memory[0] == b.mark && std::memcmp(b.memory, b.memory + 1, b.bytes - 1) == 0;
    known = velo_pool_free(pool, b.memory, b.bytes, nullptr) == VELO_OK && known;
  }
  void give_all() {
    while (!blocks.empty()) give(blocks.size() - 1);
  }
};

void work(velo_pool_kind kind, int checked, int trim_every, int threads, std::uint32_t seed) {
  INFO("kind " << kind << " checked " << checked << " trim " << trim_every << " threads " << threads
               << " seed " << seed);
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = kind;
  desc.limit = limit;
  desc.checked = checked;
  const std::uint64_t before = resident();
  const live_pool pool(desc);
  std::vector<run> runs;
  for (int t = 0; t < threads; ++t)
    runs.push_back({pool,
                    std::mt19937(seed * 16 + static_cast<std::uint32_t>(t)),
                    trim_every,
                    threads == 1,
                    {}});
  const int steps = 2500;
  std::vector<std::thread> workers;
  for (run& r : runs)
    workers.emplace_back([&r, steps] {
      for (int i = 1; i <= steps; ++i) r.step(i);
    });
  for (std::thread& w : workers) w.join();
  const std::uint64_t grown = resident() - std::min(before, resident());
  const velo_pool_stats full = pool.stats();
  CHECK(is_sound(full));
  CHECK(grown <= full.bytes_reserved + slack);
  std::uint64_t refused = 0;
  for (run& r : runs) {
    CHECK(r.sound);
    CHECK(r.whole);
    CHECK(r.known);
    refused += r.refused;
    r.give_all();
  }
  CHECK(refused > 0);
  CHECK(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  const velo_pool_stats empty = pool.stats();
  CHECK(empty.bytes_live == 0);
  CHECK(is_sound(empty));
}

}  // namespace

TEST_CASE("counters and pages stay within the limit while requests are refused") {
  for (const velo_pool_kind kind :
       {VELO_POOL_ORDINARY, VELO_POOL_HUGE, VELO_POOL_SHARED, VELO_POOL_LOCKED}) {
    for (const int trim_every : {0, 50})
      for (const std::uint32_t seed : {1u, 2u, 3u}) work(kind, 0, trim_every, 1, seed);
    work(kind, 1, 0, 1, 4);
    work(kind, 0, 0, 4, 5);
    work(kind, 0, 50, 4, 6);
  }
}
