// The candidates of a job: every layout of its space with a valid shape, and a rejection for every
// other one.
//
// A dimension that cannot go on, as a tp that does not divide the heads, is rejected once for all
// dimensions behind it; those are 0 or -1 in the rejection. A candidate has a lower bound of its
// step's time from the work of the busiest rank and the delay to it and back. Cost: about two
// microseconds and a hundred bytes each.
#pragma once

#include <vector>

#include "sched/tune/tune.hpp"

namespace velo::sched::tune {

struct candidate {
  full_layout layout;
  double bound;  // seconds of a step, at least
};

// Appends to `rejected`. Throws ARGUMENT where there are too many.
std::vector<candidate> candidates_of(const job& training_job, std::vector<rejection>& rejected);

}  // namespace velo::sched::tune
