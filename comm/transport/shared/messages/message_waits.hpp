// The peers for whose messages a rank waits, recorded in shared memory.
//
// A rank that goes to sleep records which peers have to send and which have to empty a slot. A rank
// that reaches its deadline follows these records through the wait-for graph (blame.hpp). It
// ignores a record that the channels contradict: that rank could continue and does not, so it is at
// fault. A record costs one word for each message, before a system call. Limitation: a rank that
// stops between taking what it waited for and clearing its record counts as waiting.
#pragma once

#include "comm/transport/shared/shared_area.hpp"

namespace velo::comm {

void record_wait(const shared_area& area, int rank, int peer, bool receives) noexcept;
void clear_waits(const shared_area& area, int rank) noexcept;

// The ranks to blame after `rank` has waited too long for the awaited ones.
rank_set to_blame(const shared_area& area, int rank, const rank_set& awaited) noexcept;

}  // namespace velo::comm
