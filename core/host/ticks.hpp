// The processor's counter of ticks, the cheapest clock (10 ns; CLOCK_MONOTONIC takes 23): for times
// that are written often and read seldom.
//
// All processors share the counter, and it runs at one rate; where it does not, ticks are
// nanoseconds of CLOCK_MONOTONIC. Ticks become time only when somebody reads them: two moments that
// are known in ticks and on a clock, best one before and one after, turn all others into that
// clock's nanoseconds.
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

// Ticks as nanoseconds of the clock of two instants. Never turns an order round.
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
