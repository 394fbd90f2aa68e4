// Who is used when, and how long the computing between takes: what a planner of swaps goes by.
//
// Plain data in the order of coming; times are those of the plan's lifetimes.
#pragma once

#include <cstdint>
#include <vector>

#include "velo/plan.h"

namespace velo::memory {

struct plan_use {
  std::int64_t buffer;
  std::int64_t time;
  velo_access access;
};

// Computing that ends at a time and needs what was used since the one before.
struct plan_work {
  std::int64_t time;
  double seconds;
};

struct plan_uses {
  std::vector<plan_use> uses;
  std::vector<plan_work> work;
};

}  // namespace velo::memory
