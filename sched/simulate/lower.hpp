// Inserts sends and receives among the actions of every rank, so that no rank deadlocks.
//
// All messages have one order on all ranks: the time at which their contents are made if all
// actions take equally long. A rank sends after the action that makes the contents, behind the
// messages that come earlier in the order, and receives where that time falls among its actions.
// Both ranks of the first unfinished message have therefore done everything before it, so it
// passes, whether sends return at once, wait for the receiver, or belong to groups that end
// together. Two ranks never disagree about the order. Cost: one simulation, and a sort for each
// rank; the rows become lists.
#pragma once

#include "sched/schedule/schedule.hpp"

namespace velo::sched {

// Returns the schedule with sends and receives in place of any that it has. Throws STATE naming the
// first rank that would wait forever, and ARGUMENT if there are more actions than a list may hold.
//
// sends_first: between two actions that are no messages a rank sends before it receives. This needs
// sends that go on while their rank receives (velo_link.start_send), since two blocking sends could
// wait for each other. The proof holds: the first message in the order that has not passed is
// started before its sender waits for another one.
schedule lower(const schedule& pipeline, bool sends_first = false);

}  // namespace velo::sched
