// A group of ranks as the link of an executor: each rank a process, or a thread with a context.
//
// What crosses is a message of the group, on the context's inline stream. A send may wait for its
// receive, as the group's do where messages are long, so a schedule without sends is carried out as
// sched/schedule/lower.hpp makes it, in which no rank waits for ever. Where ranks share memory,
// sends are started: what is long goes into memory that the sender lends, copied once, and is used
// there. The first failure of a rank ends the group, and with it the waiting of all others, who are
// told why. Cost: that of the group's messages.
#pragma once

#include "comm/group/group.hpp"
#include "velo/executor.h"

namespace velo::sched {

// Once the group is destroyed its functions answer HANDLE.
velo_link link_over(comm::group& of);
// The handle of the group whose link it is; nullptr: of none.
const void* group_of_link(const velo_link& link) noexcept;

}  // namespace velo::sched
