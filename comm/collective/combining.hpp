// all_reduce and reduce: the same elements of all ranks combined, for all ranks or for one.
#pragma once

#include "comm/transport/meeting.hpp"

namespace velo::comm {

// for_rank: who gets the result, -1: all.
void combine_for(meeting& m, int for_rank);

}  // namespace velo::comm
