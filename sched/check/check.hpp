// The validator: the rules that every schedule must obey, however it was made.
//
// It is independent of the generators. It reads the rows once for the rules of a single rank: every
// action occurs once, on its stage's rank, after the actions that it needs on that rank. That takes
// three bits for each stage and unit. It then runs the rows to see whether all ranks together reach
// their ends. A rank's progress does not depend on the speed of others, so one run decides. Sends
// and receives are checked last (sched/check/sends.hpp).
#pragma once

#include <string>
#include <vector>

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

struct violation {
  velo_violation_code code;
  std::int32_t rank;   // -1: no single rank
  std::int64_t index;  // in the rank's row; -1: no action
  action subject;      // the action there, or the missing one
  std::string reason;
};

inline constexpr std::size_t most_violations = 1000;

// Returns the violations, rank by rank in the order of rows, at most most_violations.
std::vector<violation> check(const schedule& pipeline);

}  // namespace velo::sched
