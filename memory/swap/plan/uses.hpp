// The uses of buffers, and how long the computing between them takes: input of the swap planner.
//
// Plain data in the order in which it was added; times are those of the plan's lifetimes.
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

// Computing that ends at `time` and needs the buffers used since the previous one.
struct plan_work {
  std::int64_t time;
  double seconds;
};

struct plan_uses {
  std::vector<plan_use> uses;
  std::vector<plan_work> work;
};

}  // namespace velo::memory
