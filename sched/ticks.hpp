// Time as whole numbers, so that simulated times are exact and comparisons of them mean something.
//
// A cost is taken for the decimal number that it prints as: 0.1 is a tenth. All costs, cut to a
// stage's share, are whole multiples of some tick, 1 / `unit` of theirs, as long as they have few
// digits; the sums of a simulation are exact then, and a result is the double nearest to the true
// one. Where digits are too many for 62 bits, costs are rounded to a tick that lets the longest
// simulation fit: to 2^-30 of the largest cost at the worst, with 2^30 actions.
#pragma once

#include <cstdint>

#include "sched/schedule.hpp"

namespace velo::sched {

// What actions take: a whole rank's, for one micro-batch, in any unit.
struct costs {
  double forward = 1, input = 1, weight = 1;
  double fused = -1;  // of an FB; below 0: the sum of its parts
  double latency = 0;
};

// The same for one stage and one unit of a schedule, in ticks.
struct ticks {
  std::int64_t forward = 0, input = 0, weight = 0, fused = 0, latency = 0;
  double unit = 1;  // ticks in one of the costs' units; whole or a power of two

  double value(std::int64_t count) const;  // in the costs' unit
};

// actions: all that a simulation adds up.
ticks ticks_of(const costs& given, const shape& what, std::int64_t actions);

}  // namespace velo::sched
