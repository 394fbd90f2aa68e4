// The part of the validator that checks sends and receives, if a schedule has any.
//
// Every result and gradient that another rank needs is sent once and received once, after the
// action that makes it and before the action that needs it. Two ranks send and receive in the same
// order. All ranks reach their ends in each of three cases: a send returns at once, it waits for
// its receive, or it belongs to a group of adjacent sends and receives that start together and end
// when each has its counterpart. In each case the result does not depend on the order in which
// ranks run, so one run decides.
//
// Cost: a byte and two counts for each stage and unit; four passes over the rows.
#pragma once

#include <vector>

#include "sched/check/check.hpp"

namespace velo::sched {

// Returns the violations of sends and receives, at most `most`. The other rules hold already.
std::vector<violation> check_sends(const schedule& pipeline, std::size_t most);

}  // namespace velo::sched
