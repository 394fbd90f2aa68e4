// The validator: what a schedule must be, asked of any schedule, however it came about.
//
// It knows nothing of generators. Rows are read once for what each rank can see alone (everything
// once, in an order in which an action's own past is before it, on the stage's rank), with three
// bits a stage and unit; then once more as machines, to see that all ranks together come to the
// end. A machine's progress does not depend on how fast others are, so one run decides for all.
// Sends and receives, where there are any, are looked at last (sched/check/messages.hpp).
#pragma once

#include <string>
#include <vector>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

struct violation {
  velo_violation_code code;
  std::int32_t rank;   // -1: of no one rank
  std::int64_t index;  // in the rank's row; -1: of no action
  action what;         // what stands there, or what is missing
  std::string reason;
};

inline constexpr std::size_t most_violations = 1000;

// What is wrong, rank by rank in the order of rows; empty: nothing. No more than most_violations.
std::vector<violation> check(const schedule& what);

}  // namespace velo::sched
