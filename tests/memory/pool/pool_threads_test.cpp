// Several threads on one pool: mixed allocation, frees by other threads, trims; counters exact at
// the end, and what a thread kept comes back when it ends.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/memory/pool/pools.hpp"
#include "tests/random.hpp"

using namespace velo::testing;

namespace {

// VELO_POOL_SECONDS: how long; 60 in the long runs.
std::chrono::milliseconds duration() {
  const char* seconds = std::getenv("VELO_POOL_SECONDS");
  return std::chrono::milliseconds(seconds != nullptr ? 1000 * std::atoi(seconds) : 700);
}

// Blocks handed from thread to thread.
class exchange {
 public:
  struct handed_block {
    char* memory = nullptr;
    std::uint64_t bytes = 0;
  };
  handed_block swap(handed_block given, std::size_t at) {
    const std::lock_guard<std::mutex> lock(lock_);
    std::swap(given, places_[at % places_.size()]);
    return given;
  }
  std::vector<handed_block>& all() { return places_; }

 private:
  std::mutex lock_;
  std::vector<handed_block> places_{std::vector<handed_block>(64)};
};

struct counts {
  std::uint64_t allocations = 0, frees = 0;
};

// Marks the first and last byte, which nobody else may change.
void mark(const exchange::handed_block& p) {
  p.memory[0] = p.memory[p.bytes - 1] = static_cast<char>(p.bytes);
}
bool is_marked(const exchange::handed_block& p) {
  const auto wanted = static_cast<char>(p.bytes);
  return p.memory[0] == wanted && p.memory[p.bytes - 1] == wanted;
}

void work(const live_pool& pool, exchange& others, unsigned seed, const std::atomic<bool>& stop,
          counts& done, std::atomic<int>& damaged) {
  thread_random random(seed);
  std::vector<exchange::handed_block> mine;
  const auto give = [&](exchange::handed_block p) {
    if (p.memory == nullptr) return;
    damaged += is_marked(p) ? 0 : 1;
    damaged += velo_pool_free(pool, p.memory, p.bytes, nullptr) == VELO_OK ? 0 : 1;
    ++done.frees;
  };
  while (!stop) {
    const auto choice = random.below(100);
    if (choice < 45) {
      exchange::handed_block p;
      p.bytes = random() % (std::uint64_t{1} << (4 + random.below(17))) + 1;
      void* memory = nullptr;
      if (pool.allocate(p.bytes, &memory, nullptr, random.one_in(10) ? 1 : 0) != VELO_OK) {
        ++damaged;
        continue;
      }
      p.memory = static_cast<char*>(memory);
      ++done.allocations;
      mark(p);
      mine.push_back(p);
    } else if (choice < 70 && !mine.empty()) {
      give(mine.back());
      mine.pop_back();
    } else if (choice < 99 && !mine.empty()) {
      const exchange::handed_block from = others.swap(mine.back(), random());
      mine.pop_back();
      give(from);
    } else if (choice == 99 && random.one_in(20)) {
      velo_pool_trim(pool, random() % (8 * mib), nullptr);
    }
    while (mine.size() > 100) give(mine.back()), mine.pop_back();
  }
  for (const exchange::handed_block& p : mine) give(p);
}

void race(const velo_pool_desc& desc) {
  const live_pool pool(desc);
  exchange others;
  constexpr int threads = 8;
  counts done[threads];
  std::atomic<bool> stop{false};
  std::atomic<int> damaged{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back(
        [&, t] { work(pool, others, static_cast<unsigned>(t), stop, done[t], damaged); });
  std::this_thread::sleep_for(duration());
  stop = true;
  for (std::thread& t : all) t.join();
  counts sum;
  for (const counts& c : done) sum.allocations += c.allocations, sum.frees += c.frees;
  std::uint64_t left = 0, left_bytes = 0;
  for (const exchange::handed_block& p : others.all()) {
    left += p.memory != nullptr ? 1 : 0;
    left_bytes += p.bytes;
  }
  const velo_pool_stats now = pool.stats();
  CHECK(damaged == 0);
  CHECK(now.allocations == sum.allocations);
  CHECK(now.frees == sum.frees);
  CHECK(sum.allocations == sum.frees + left);
  CHECK(now.bytes_live - now.bytes_rounding == left_bytes);
  CHECK(now.bytes_peak >= now.bytes_live);
  for (const exchange::handed_block& p : others.all())
    if (p.memory != nullptr) pool.give(p.memory, p.bytes);
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_live == 0);
  CHECK(pool.stats().bytes_reserved == 0);
}

}  // namespace

TEST_CASE("eight threads: no block is shared or lost, and counters are exact at the end") {
  race(VELO_POOL_DESC_INIT);
}

TEST_CASE("the same with every block looked after") {
  race(checked_pool());
}

TEST_CASE("the same where memory is short") {
  race(limited_pool(512 * mib));
}

TEST_CASE("what a thread kept within reach comes back when it ends") {
  const live_pool pool;
  std::thread([&] {
    for (const std::uint64_t bytes : {100ull, 5000ull, 64ull << 10, 3ull << 20})
      pool.give(pool.take(bytes), bytes);
  }).join();
  REQUIRE(velo_pool_trim(pool, 0, nullptr) == VELO_OK);
  CHECK(pool.stats().bytes_reserved == 0);
  CHECK(pool.stats().frees == 4);
}

TEST_CASE("large blocks that an idle thread keeps are within the pool's reach") {
  const live_pool pool(limited_pool(8 * mib));
  std::atomic<bool> kept{false}, done{false};
  std::thread idle([&] {
    pool.give(pool.take(8 * mib), 8 * mib);
    kept = true;
    while (!done) std::this_thread::yield();
  });
  while (!kept) std::this_thread::yield();
  void* memory = nullptr;
  CHECK(pool.allocate(7 * mib, &memory) == VELO_OK);
  done = true;
  idle.join();
  if (memory != nullptr) pool.give(memory, 7 * mib);
}
