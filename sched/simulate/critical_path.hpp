// The critical path of a timeline: the chain of actions that the makespan consists of.
//
// From the action that ends last it goes back, at each action to what its begin had to wait for:
// the action before on the same rank, the maker of a message, a copy, a collective. Lengths of the
// steps and what lies between them add up to the makespan, in ticks exactly. Where messages wait
// for each other on their way, the step before is the maker of the first of those that went without
// a gap. In a measured timeline it is what was there last before the action began.
//
// O(actions) once for who makes what, 32 bytes a stage and unit; then O(1) a step but for actions
// beside what a rank computes.
#pragma once

#include <vector>

#include "sched/simulate/timeline.hpp"
#include "velo/timeline.h"

namespace velo::sched {

struct path_step {
  action what;
  std::int32_t rank;
  std::int64_t index;  // in the rank's order
  span when;
  std::int64_t wait;      // ticks from the end of the step before
  velo_path_cause cause;  // what its begin waited for
};

// By time; empty where the schedule is. Throws ARGUMENT beyond `most_listed` actions.
std::vector<path_step> critical_path(const timeline& of, const spans& when);
std::vector<path_step> critical_path(const timeline& of);

}  // namespace velo::sched
