// The part of the validator that checks sends and receives, if a schedule has any.
//
// Every result and gradient that another rank needs is sent once and received once, behind the
// action that makes it and before the one that needs it. Two ranks send and receive in the same
// order. All ranks reach their ends, whether a send returns at once, waits for its receive, or
// belongs to a group of adjacent sends and receives that start together and end when each has its
// other side. In each of the three cases the result does not depend on the order in which ranks are
// run, so one run decides.
//
// A byte and two counts for each stage and unit; four passes over the rows.
#pragma once

#include <vector>

#include "sched/check/check.hpp"

namespace velo::sched {

// Returns the violations of sends and receives, at most `most`. The other rules hold already.
std::vector<violation> check_sends(const schedule& pipeline, std::size_t most);

}  // namespace velo::sched
