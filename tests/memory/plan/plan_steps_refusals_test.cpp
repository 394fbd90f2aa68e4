// Steps that make no sense, and frees of what no step has: refused by name, and nothing changed.
#include <catch2/catch.hpp>
#include <string>

#include "tests/memory/swap/planned.hpp"
#include "tests/structs.hpp"

using velo::testing::live_pool;
using velo::testing::planned;
using velo::testing::request_of;

TEST_CASE("steps that make no sense are refused") {
  const planned p;
  CHECK(velo_plan_end(p.plan) == VELO_ERR_STATE);
  CHECK(velo_plan_begin(p.plan, 7) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_begin(p.plan, VELO_PLAN_REPLAY) == VELO_ERR_STATE);  // nothing recorded
  REQUIRE(velo_plan_begin(p.plan, VELO_PLAN_RECORD) == VELO_OK);
  CHECK(velo_plan_begin(p.plan, VELO_PLAN_RECORD) == VELO_ERR_STATE);
  CHECK(velo_plan_add(p.plan, 0, 1, 64, nullptr) == VELO_ERR_STATE);
  CHECK(velo_plan_solve(p.plan, nullptr) == VELO_ERR_STATE);
  CHECK(velo_plan_use(p.plan, &p, 2) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_use(p.plan, &p, VELO_ACCESS_READ) == VELO_OK);  // of somebody else
  CHECK(velo_plan_work(p.plan, -1) == VELO_ERR_ARGUMENT);
  REQUIRE(velo_plan_end(p.plan) == VELO_OK);
  CHECK(velo_plan_begin(p.plan, VELO_PLAN_REPLAY) == VELO_ERR_STATE);  // not solved
  REQUIRE(velo_plan_solve(p.plan, nullptr) == VELO_OK);
  REQUIRE(velo_plan_begin(p.plan, VELO_PLAN_REPLAY) == VELO_OK);
  REQUIRE(velo_plan_end(p.plan) == VELO_OK);
  REQUIRE(velo_plan_add(p.plan, 0, 1, 64, nullptr) == VELO_OK);
  REQUIRE(velo_plan_solve(p.plan, nullptr) == VELO_OK);
  CHECK(velo_plan_begin(p.plan, VELO_PLAN_REPLAY) == VELO_ERR_STATE);  // other buffers
  CHECK(velo_plan_add_use(p.plan, 0, 1, VELO_ACCESS_READ) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_add_use(p.plan, 1, 0, VELO_ACCESS_READ) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_add_use(p.plan, 0, 0, 9) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_add_use(p.plan, 0, 0, VELO_ACCESS_READ) == VELO_OK);
}

TEST_CASE("more than there are addresses is refused while a step is replayed") {
  const planned p;
  p.record([&] { p.free(p.allocate(10000), 10000); });
  REQUIRE(velo_plan_begin(p.plan, VELO_PLAN_REPLAY) == VELO_OK);
  char* a = p.allocate(10000);
  constexpr std::uint64_t one = 1;
  for (const std::uint64_t bytes : {one << 45, one << 50, ~std::uint64_t{4095}}) {
    const velo_pool_request request = request_of(bytes);
    void* memory = nullptr;
    CHECK(velo_plan_allocate(p.plan, &request, &memory) == VELO_ERR_MEMORY);
    CHECK(memory == nullptr);
  }
  p.free(a, 10000);
}

TEST_CASE("a plan without a pool has no steps") {
  velo_plan plan = nullptr;
  void* memory = nullptr;
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  REQUIRE(velo_plan_create(nullptr, &plan) == VELO_OK);
  CHECK(velo_plan_begin(plan, VELO_PLAN_RECORD) == VELO_ERR_STATE);
  CHECK(velo_plan_allocate(plan, &request, &memory) == VELO_ERR_STATE);
  CHECK(memory == nullptr);
  velo_plan_destroy(plan);
}

TEST_CASE("frees of what is no block in use are refused and change nothing") {
  const planned p;
  char* a = nullptr;
  const auto step = [&] {
    a = p.allocate(10000);
    p.free(a, 10000);
  };
  p.record(step);
  REQUIRE(velo_plan_begin(p.plan, VELO_PLAN_REPLAY) == VELO_OK);
  a = p.allocate(10000);
  CHECK(velo_plan_free(p.plan, a + 64, 10000, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(velo_plan_free(p.plan, &a, 8, nullptr) == VELO_ERR_ARGUMENT);
  p.free(a, 10000);
  CHECK(velo_plan_free(p.plan, a, 10000, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(p.step().bytes_live == 0);
  REQUIRE(velo_plan_end(p.plan) == VELO_OK);
}

TEST_CASE("a pool that has ended is named") {
  velo_plan plan = nullptr;
  {
    const live_pool pool;
    velo_plan_desc desc = VELO_PLAN_DESC_INIT;
    desc.pool = pool;
    REQUIRE(velo_plan_create(&desc, &plan) == VELO_OK);
  }
  CHECK_REFUSED(velo_plan_begin(plan, VELO_PLAN_RECORD), VELO_ERR_HANDLE, "plan.pool");
  velo_plan_destroy(plan);
}
