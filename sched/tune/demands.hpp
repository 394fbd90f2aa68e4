// The demands on an order that a search finds: costs and a cap.
//
// Costs are those of an average rank, and every stage has a share of them by its time. The cap is
// in micro-batches through an average rank, one for all ranks; but ranks differ in room, as their
// parameters and the sizes of their activations do. There are therefore up to three caps, the
// widest first: the room of the roomiest rank, the middle, and the room that every rank has
// whichever of its stages it holds. The cap is only a guide: the resulting order's memory is
// computed exactly afterwards.
#pragma once

#include "sched/tune/stages.hpp"

namespace velo::sched::tune {

// The room of ranks for activations, by rank, in one of the layout's placements.
struct room {
  placement of;
  std::vector<double> bytes;
};
std::vector<demand> demands_of(const velo_tuning_layout& layout, const layer_costs& costs,
                               const std::vector<layer_cost>& stages,
                               const std::vector<room>& rooms);

}  // namespace velo::sched::tune
