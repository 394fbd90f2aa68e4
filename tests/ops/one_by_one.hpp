// A core::parallel that claims so many threads and runs all tasks on the calling thread: for
// engines that are tested without a context.
#pragma once

#include <cstdint>

#include "core/stream/parallel.hpp"

namespace velo::testing {

inline core::parallel one_by_one(int threads = 1) {
  const auto run = [](void*, std::int64_t tasks, core::parallel::task_fn fn, void* user) {
    for (std::int64_t task = 0; task < tasks; ++task) fn(user, task, 0);
  };
  return {nullptr, run, threads};
}

}  // namespace velo::testing
