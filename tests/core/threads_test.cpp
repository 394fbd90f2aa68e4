// The thread pool: every task once, whatever the number of threads, also with more threads than
// processors.
#include "core/stream/threads.hpp"

#include <pmmintrin.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "core/host/float_mode.hpp"

using namespace velo::core;

TEST_CASE("every task runs exactly once with a thread number in range") {
  const int threads = GENERATE(1, 2, 3, 8);
  thread_pool pool(threads);
  const parallel region = pool.as_parallel();
  CHECK(region.threads() == threads);
  for (const std::int64_t tasks : {0, 1, 2, 3, 7, 8, 9, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
    std::atomic<int> out_of_range{0};
    region(tasks, [&](std::int64_t task, int thread) {
      if (thread < 0 || thread >= threads) ++out_of_range;
      ++runs[static_cast<std::size_t>(task)];
    });
    CHECK(out_of_range == 0);
    for (const auto& count : runs) REQUIRE(count == 1);
  }
}

TEST_CASE("scratch by thread number is never shared while a region runs") {
  const int threads = GENERATE(2, 3, 8);
  thread_pool pool(threads);
  const parallel region = pool.as_parallel();
  std::vector<std::atomic<int>> inside(static_cast<std::size_t>(threads));
  std::atomic<int> shared{0};
  for (int round = 0; round < 200; ++round) {
    region(4 * threads, [&](std::int64_t, int thread) {
      auto& mine = inside[static_cast<std::size_t>(thread)];
      if (mine.fetch_add(1) != 0) ++shared;
      mine.fetch_sub(1);
    });
  }
  CHECK(shared == 0);
}

TEST_CASE("many short regions with more threads than processors lose nothing") {
  thread_pool pool(8);
  const parallel region = pool.as_parallel();
  std::int64_t sums[8 * 16] = {};  // plain memory: the region orders what its threads write
  for (std::int64_t round = 0; round < 5000; ++round)
    region(8, [&](std::int64_t task, int) { sums[task * 16] += round; });
  for (int task = 0; task < 8; ++task) CHECK(sums[task * 16] == 5000 * 4999 / 2);
}

TEST_CASE("a region wakes workers that have gone to sleep") {
  thread_pool pool(3);
  const parallel region = pool.as_parallel();
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> ran{0};
    region(3, [&](std::int64_t, int) {
      ++ran;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    CHECK(ran == 3);
  }
}

TEST_CASE("with idle processors the workers take part") {
  if (std::thread::hardware_concurrency() < 2) return;
  thread_pool pool(2);
  const parallel region = pool.as_parallel();
  bool both = false;
  for (int round = 0; round < 50 && !both; ++round) {
    std::thread::id who[2];
    region(2, [&](std::int64_t task, int) {
      who[task] = std::this_thread::get_id();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    both = who[0] != who[1];
  }
  CHECK(both);
}

TEST_CASE("a region inside a region runs on its own thread") {
  thread_pool pool(2);
  const parallel region = pool.as_parallel();
  std::atomic<int> ran{0};
  const auto caller = std::this_thread::get_id();
  region(2, [&](std::int64_t, int) {
    if (std::this_thread::get_id() == caller) region(10, [&](std::int64_t, int) { ++ran; });
  });
  CHECK(ran % 10 == 0);
  CHECK(ran >= 10);
}

TEST_CASE("workers compute in IEEE arithmetic when the host's thread flushes denormals") {
  volatile float small = 1.2e-38f;
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  if (small * 0.5f != 0.0f) return;  // valgrind's processor has no such mode
  {
    thread_pool pool(3);  // workers inherit the mode and must undo it
    const parallel region = pool.as_parallel();
    const float_mode standard;
    volatile float tiny[3] = {};
    for (int round = 0; round < 20; ++round) {
      region(3, [&](std::int64_t task, int) {
        tiny[task] = small * 0.5f;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      });
      for (const float value : {tiny[0], tiny[1], tiny[2]}) CHECK(value > 0.0f);
    }
  }
  CHECK(_MM_GET_FLUSH_ZERO_MODE() == _MM_FLUSH_ZERO_ON);
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_OFF);
}

TEST_CASE("the host's parallel_for carries a region, cut into at most its threads") {
  struct host {
    int calls = 0;
    std::int64_t parts = 0;
    static void run(void* user, std::int64_t tasks, void (*task)(void*, std::int64_t), void* data) {
      auto& self = *static_cast<host*>(user);
      ++self.calls;
      self.parts = tasks;
      for (std::int64_t i = tasks - 1; i >= 0; --i) task(data, i);
    }
  } mine;
  host_threads threads{{sizeof(velo_parallel_for), 4, &mine, &host::run}, 3};
  const parallel region = threads.as_parallel();
  CHECK(region.threads() == 3);
  std::vector<int> runs(100);
  region(100, [&](std::int64_t task, int thread) {
    if (thread >= 0 && thread < 3) ++runs[static_cast<std::size_t>(task)];
  });
  CHECK(std::accumulate(runs.begin(), runs.end(), 0) == 100);
  CHECK(mine.calls == 1);
  CHECK(mine.parts == 3);
  region(1, [&](std::int64_t, int) {});
  CHECK(mine.calls == 1);  // one task needs nobody's threads
}

TEST_CASE("slices too few to be worth the host's threads run where they are") {
  int calls = 0;
  const auto run = [](void* user, std::int64_t tasks, void (*task)(void*, std::int64_t),
                      void* data) {
    ++*static_cast<int*>(user);
    for (std::int64_t i = 0; i < tasks; ++i) task(data, i);
  };
  host_threads threads{{sizeof(velo_parallel_for), 2, &calls, run}, 2};
  const parallel region = threads.as_parallel();
  int runs = 0;
  const auto body = [&](std::int64_t, int) { ++runs; };
  region.slices(5, body);
  region.slices(5, 100, body);
  CHECK(runs == 105);
  CHECK(calls == 0);
  region.slices(6, body);
  region.slices(6, 2, body);
  CHECK(runs == 113);
  CHECK(calls == 2);
  thread_pool pool(2);  // velo's own wake for a tenth of that
  std::atomic<int> elsewhere{0};
  pool.as_parallel().slices(2, [&](std::int64_t, int thread) { elsewhere += thread; });
  CHECK(elsewhere == 1);
}
