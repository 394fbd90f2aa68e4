// What ranks send and receive, put among their actions so that nobody waits for ever.
//
// All sends and receives are given one order for all ranks: by the time at which what is sent is
// made, were every action to take as long. A rank sends right behind the action that makes, and
// receives where that time lies among its own actions. So of the first message in that order that
// has not passed, both ranks have done everything before it: it passes, whether sends return at
// once, wait for the receiver, or go in groups that end together; and two ranks never disagree
// which message comes first. One simulation and a sort a rank; makes lists.
#pragma once

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// The schedule with sends and receives, any that it has replaced. Throws STATE naming the first
// rank that would wait for ever, ARGUMENT where there are more actions than a list may hold.
// sends_first: between two actions that are no messages a rank sends before it receives. Only for
// sends that go on while their rank receives (velo_link.start_send): two that wait could wait for
// each other. The proof stands: the first message in that order that has not passed is started
// before its sender waits for another one.
schedule lower(const schedule& what, bool sends_first = false);

}  // namespace velo::sched
