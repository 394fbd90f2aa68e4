// The part of the validator that looks at sends and receives, where a schedule has any.
//
// Every result and gradient that another rank needs is sent once and received once, behind the
// action that makes it and before the one that needs it; two ranks send and receive in the same
// order; and all ranks come to the end, whichever way sends wait. Ranks are machines once more,
// with three meanings of a send: it returns at once; it waits for its receive; or all sends and
// receives that stand together begin together and end when each has its other side. In none of the
// three does the order in which machines run decide anything, so one run of each decides for all.
//
// A byte and two counts a stage and unit; four passes over the rows.
#pragma once

#include <vector>

#include "sched/check/check.hpp"

namespace velo::sched {

// What is wrong with them, at most `most`. The schedule without them has nothing wrong.
std::vector<violation> check_messages(const schedule& what, std::size_t most);

}  // namespace velo::sched
