// A group of ranks as the link of an executor: each rank is a process, or a thread with a context.
//
// The link's messages are messages of the group, on the context's inline stream. A long message may
// block its sender until it is received, so a schedule without sends runs as
// sched/simulate/lower.hpp lowers it, in which no rank deadlocks. If ranks share memory, sends are
// started: a long message is copied once into the sender's shared memory, and the receiver uses it
// there. The first failure of a rank ends the group, and all waiting ranks get the reason. Cost:
// that of the group's messages.
#pragma once

#include "comm/group/group.hpp"
#include "velo/executor.h"

namespace velo::sched {

// The link's functions return HANDLE once the group is destroyed.
velo_link link_over(comm::group& of);
// The handle of the group behind a link; nullptr for other links.
const void* group_of_link(const velo_link& link) noexcept;

}  // namespace velo::sched
