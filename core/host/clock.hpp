// The clock of deadlines, waits and measured times.
#pragma once

#include <time.h>

#include <cstdint>

namespace velo::core {

inline std::int64_t now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
}

}  // namespace velo::core
