// In shared memory: whom a rank waits for in messages.
//
// A rank that goes to sleep for messages notes from whom they are to come, and who is to take some.
// Who reaches its deadline believes a note only where the channels bear it out: a rank that could
// go on, and does not, is at fault (blame.hpp). Cost: a word for each message, before a system
// call. A rank that is stopped after it took what it waited for, and before it took its note back,
// is believed.
#pragma once

#include "comm/transport/shared/shared_area.hpp"

namespace velo::comm {

void note_wait(const shared_area& area, int rank, int peer, bool receives) noexcept;
void forget_waits(const shared_area& area, int rank) noexcept;

// Those to blame when `rank` has waited for these too long.
rank_set to_blame(const shared_area& area, int rank, const rank_set& awaited) noexcept;

}  // namespace velo::comm
