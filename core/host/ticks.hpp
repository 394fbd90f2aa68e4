// The processor's tick counter, the cheapest clock (10 ns; CLOCK_MONOTONIC takes 23), for times
// that are written often and read rarely.
//
// All processors share the counter, and it runs at one rate. On machines where it does not, ticks
// are nanoseconds of CLOCK_MONOTONIC. Ticks are converted to time only when they are read: two
// moments known in ticks and on a clock, preferably one before and one after, define the
// conversion.
#pragma once

#include <time.h>

#include <cstdint>

namespace velo::core {

std::uint64_t ticks_now() noexcept;

// One moment in ticks and on a clock.
struct instant {
  std::uint64_t ticks = 0;
  std::int64_t ns = 0;
  static instant now(clockid_t clock) noexcept;
};

// Converts ticks to nanoseconds of the clock of two instants. The conversion preserves order.
class tick_scale {
 public:
  tick_scale(const instant& earlier, const instant& later) noexcept;

  std::int64_t at(std::uint64_t when) const noexcept {
    return from_.ns +
           static_cast<std::int64_t>(
               static_cast<double>(static_cast<std::int64_t>(when - from_.ticks)) * ns_a_tick_);
  }

 private:
  instant from_;
  double ns_a_tick_ = 0;
};

}  // namespace velo::core
