// The rounds of a sum over ranks whose pieces lie in slots, where no rank writes another one's
// result: each round multiplies a slice, sums this rank's part of the slice before, and fetches the
// parts of others of the one before that.
//
// Piece i carries the blocks of slice i and the sums of slice i - 1, so round i reads the blocks of
// slice i - 1 and the sums of slice i - 2, both from piece i - 1. The sums are fetched after the
// post, so that no peer waits for this copy. Cost: two rounds more than there are slices.
#pragma once

#include <cstdint>

#include "comm/transport/shared/relay.hpp"

namespace velo::sched {

// slices: multiply_for_peers(i) fills this rank's slot, multiply_own_and_post(i) adds up its part
// of slice i there, too, fetch(i) copies the parts of others, and hand_on(i) takes what has
// arrived. meanwhile() is called while the last blocks of others are on their way.
template <class Slices, class Meanwhile>
void sum_through_slots(comm::relay& link, std::int64_t count, Slices& slices,
                       const Meanwhile& meanwhile) {
  for (std::int64_t i = 0; i <= count + 1; ++i) {
    if (i <= count) link.wait_slot();
    if (i < count) slices.multiply_for_peers(i);
    if (i > count) meanwhile();
    if (i > 0) link.wait_piece();
    if (i > 0 && i <= count) slices.multiply_own_and_post(i - 1);
    if (i <= count) link.post();
    if (i > 1) slices.fetch(i - 2);
    if (i > 0) link.release();
    if (i > 1) slices.hand_on(i - 2);
  }
}

}  // namespace velo::sched
