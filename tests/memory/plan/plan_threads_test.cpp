// Steps of plans that begin and end while threads allocate, use and free through them.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "tests/memory/pool/pools.hpp"
#include "tests/structs.hpp"
#include "velo/plan.h"

using velo::testing::live_pool;
using velo::testing::request_of;

namespace {

// Threads that allocate, use and free through a plan, each with sizes of its own, until it is
// asked to stop. What another thread got as well does not keep its pattern.
class churn {
 public:
  churn(velo_plan plan, std::chrono::microseconds pause) : plan_(plan), pause_(pause) {
    for (std::thread& t : threads_) t = std::thread([this] { run(5000 + started_++); });
  }
  ~churn() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
  }
  churn(const churn&) = delete;
  churn& operator=(const churn&) = delete;

 private:
  void run(std::uint64_t bytes) {
    const velo_pool_request request = request_of(bytes);
    const char pattern = static_cast<char>(bytes);
    while (!stop_) {
      void* memory = nullptr;
      if (velo_plan_allocate(plan_, &request, &memory) != VELO_OK) std::terminate();
      std::memset(memory, pattern, bytes);
      if (velo_plan_use(plan_, memory, VELO_ACCESS_WRITE) != VELO_OK) std::terminate();
      for (std::uint64_t x = 0; x < bytes; x += 63)
        if (static_cast<char*>(memory)[x] != pattern) std::terminate();
      if (velo_plan_free(plan_, memory, bytes, nullptr) != VELO_OK) std::terminate();
      if (pause_.count() != 0) std::this_thread::sleep_for(pause_);
    }
  }

  velo_plan plan_;
  std::chrono::microseconds pause_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> started_{0};
  std::thread threads_[3];
};

void take_and_give(velo_plan plan) {
  const velo_pool_request request = request_of(100);
  void* memory = nullptr;
  if (velo_plan_allocate(plan, &request, &memory) != VELO_OK ||
      velo_plan_free(plan, memory, 100, nullptr) != VELO_OK)
    FAIL("a request that failed");
}

struct plan_of_pool {
  live_pool pool;
  velo_plan handle = nullptr;

  plan_of_pool() {
    velo_plan_desc desc = VELO_PLAN_DESC_INIT;
    desc.pool = pool;
    REQUIRE(velo_plan_create(&desc, &handle) == VELO_OK);
  }
  ~plan_of_pool() { velo_plan_destroy(handle); }
  plan_of_pool(const plan_of_pool&) = delete;
  plan_of_pool& operator=(const plan_of_pool&) = delete;
};

}  // namespace

TEST_CASE("threads allocate on while steps begin and end") {
  const plan_of_pool plan;
  velo_plan_options options = VELO_PLAN_OPTIONS_INIT;
  options.seconds = 0;
  for (int i = 0; i < 30; ++i) {
    REQUIRE(velo_plan_begin(plan.handle, VELO_PLAN_RECORD) == VELO_OK);
    {
      const churn threads(plan.handle, std::chrono::microseconds(5));
      for (int request = 0; request < 5000; ++request)
        take_and_give(plan.handle);  // for a long end
      REQUIRE(velo_plan_end(plan.handle) == VELO_OK);
    }
    REQUIRE(velo_plan_solve(plan.handle, &options) == VELO_OK);
    {
      const churn threads(plan.handle, std::chrono::microseconds(5));
      REQUIRE(velo_plan_begin(plan.handle, VELO_PLAN_REPLAY) == VELO_OK);
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      REQUIRE(velo_plan_end(plan.handle) == VELO_OK);
    }
    velo_plan_step after = VELO_PLAN_STEP_INIT;
    REQUIRE(velo_plan_get_step(plan.handle, &after) == VELO_OK);
    CHECK(after.bytes_live == 0);
    CHECK(after.matched + after.resized + after.outliving + after.displaced + after.unexpected ==
          after.allocations);
  }
}
