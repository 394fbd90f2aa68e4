// The validator: the rules that any schedule must obey, however it was made.
//
// It knows nothing of generators. Rows are read once for the rules of a single rank (every action
// once, on its stage's rank, behind the actions that it needs on that rank), with three bits for
// each stage and unit. They are run once more to see that all ranks together reach their ends. A
// rank's progress does not depend on the speed of others, so one run decides. Sends and receives
// are checked last (sched/check/sends.hpp).
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
