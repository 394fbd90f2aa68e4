// A step as a sequence of stages, and each buffer's uses by stage. It is the input of the swap
// planner and of its bound.
//
// A stage ends where computing ends (or, in a plan without computing, at every time with an event)
// and needs all buffers used in it at once. A buffer is used where its life begins, at each of its
// listed uses and, if there are none, where its life ends.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/plan/solver/placement.hpp"
#include "memory/swap/plan/uses.hpp"

namespace velo::memory {

struct swap_stages {
  struct visit {
    std::int32_t stage;
    bool writes;
  };
  struct buffer {
    std::int64_t size;
    std::int32_t first, last;   // stages of its life
    std::vector<visit> visits;  // ascending; the first is `first`
    bool fixed;                 // never swapped
  };

  std::vector<std::int64_t> ends;    // by stage: the last time that belongs to it
  std::vector<double> seconds;       // by stage
  std::vector<std::int64_t> live;    // by stage: bytes of all buffers whose life touches it
  std::vector<std::int64_t> needed;  // by stage: bytes used in it or fixed
  std::vector<std::vector<std::int32_t>> present;  // by stage: buffers whose life touches it
  std::vector<buffer> buffers;

  std::int32_t count() const { return static_cast<std::int32_t>(ends.size()); }
};

// seconds: the computing time of the step, spread over all stages if the uses have no times.
// Buffers smaller than `least` bytes are fixed.
swap_stages make_stages(const std::vector<lifetime>& buffers, const plan_uses& uses, double seconds,
                        std::int64_t least);

// A lower bound of the seconds that any plan stalls. Rates are in bytes a second.
double swap_bound(const swap_stages& step, std::int64_t budget, double out_rate, double in_rate);

}  // namespace velo::memory
