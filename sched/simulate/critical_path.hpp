// The critical path of a timeline: the chain of actions whose length is the makespan.
//
// It starts at the action that ends last and walks back: from each action to the event for which
// its begin waited, such as the previous action of the rank, the maker of a message, a copy or a
// collective. The durations of the steps and of the gaps between them add up to the makespan,
// exactly in ticks. If messages queue on a link, the previous step is the maker of the first
// message of the run without a gap. In a measured timeline it is the input that arrived last before
// the action began.
//
// O(actions) once to find who makes what, with 32 bytes for each stage and unit; then O(1) for a
// step, except for actions beside those that compute.
#pragma once

#include <vector>

#include "sched/simulate/timeline.hpp"
#include "velo/timeline.h"

namespace velo::sched {

struct path_step {
  action done;
  std::int32_t rank;
  std::int64_t index;  // in the rank's order
  span when;
  std::int64_t wait;      // ticks from the end of the step before
  velo_path_cause cause;  // the reason why it did not begin before
};

// The steps by time; empty if the schedule is. Throws ARGUMENT beyond `most_listed` actions.
std::vector<path_step> critical_path(const timeline& of, const spans& when);
std::vector<path_step> critical_path(const timeline& of);

}  // namespace velo::sched
