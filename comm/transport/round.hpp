// A round: one collective of a group, as one rank carries it out over a transport.
//
// A transport implements four kinds of rounds rather than each collective. The collective's traits
// (collective.hpp) decide which kind it needs, and its pattern (pattern.hpp) says what each rank
// sends and receives. So the transports need one row of traits for a collective that only moves
// data.
#pragma once

#include "comm/operation/operation.hpp"

namespace velo::comm {

// Round has:
//   synchronize()    returns when all ranks have called it
//   move_blocks()    sends each rank its block and receives one from each, as the pattern says
//   reduce_whole()   combines the same elements of all ranks, for all ranks or for the root
//   reduce_blocks()  combines the blocks that all ranks have for this one
// Each begins by waiting for all ranks and comparing their terms. Each throws VELO_ERR_PEER once
// the group has ended.
template <class Round>
void carry_out(Round& round, const collective_traits& traits) {
  if (traits.reduces && traits.in == layout::whole) return round.reduce_whole();
  if (traits.reduces) return round.reduce_blocks();
  if (traits.in == layout::nothing) return round.synchronize();
  round.move_blocks();
}

}  // namespace velo::comm
