// A plan with a pool of its own, its steps recorded and replayed in a line each; what must work is
// required.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/memory/pool/pools.hpp"
#include "tests/structs.hpp"
#include "velo/plan.h"

namespace velo::testing {

struct planned {
  live_pool pool;
  velo_plan plan = nullptr;

  explicit planned(const velo_pool_desc& kind = VELO_POOL_DESC_INIT, std::uint64_t capacity = 0)
      : pool(kind) {
    velo_plan_desc desc = VELO_PLAN_DESC_INIT;
    desc.pool = pool;
    desc.capacity = capacity;
    REQUIRE(velo_plan_create(&desc, &plan) == VELO_OK);
  }
  ~planned() { velo_plan_destroy(plan); }
  planned(const planned&) = delete;
  planned& operator=(const planned&) = delete;

  char* allocate(std::uint64_t bytes, std::uint64_t alignment = 0) const {
    velo_pool_request request = request_of(bytes);
    request.alignment = alignment;
    void* memory = nullptr;
    REQUIRE(velo_plan_allocate(plan, &request, &memory) == VELO_OK);
    return static_cast<char*>(memory);
  }
  void free(void* memory, std::uint64_t bytes) const {
    REQUIRE(velo_plan_free(plan, memory, bytes, nullptr) == VELO_OK);
  }
  velo_plan_step step() const {
    velo_plan_step now = VELO_PLAN_STEP_INIT;
    REQUIRE(velo_plan_get_step(plan, &now) == VELO_OK);
    return now;
  }
  velo_plan_stats stats() const {
    velo_plan_stats now = VELO_PLAN_STATS_INIT;
    REQUIRE(velo_plan_get_stats(plan, &now) == VELO_OK);
    return now;
  }
  template <class F>
  void record(F&& step) const {
    REQUIRE(velo_plan_begin(plan, VELO_PLAN_RECORD) == VELO_OK);
    step();
    REQUIRE(velo_plan_end(plan) == VELO_OK);
    velo_plan_options options = VELO_PLAN_OPTIONS_INIT;
    options.seconds = 1;
    REQUIRE(velo_plan_solve(plan, &options) == VELO_OK);
  }
  template <class F>
  velo_plan_step replay(F&& step) const {
    REQUIRE(velo_plan_begin(plan, VELO_PLAN_REPLAY) == VELO_OK);
    step();
    REQUIRE(velo_plan_end(plan) == VELO_OK);
    return this->step();
  }
};

}  // namespace velo::testing
