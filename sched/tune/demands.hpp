// What the order of a kind that is found by a search is to keep to: costs and a cap.
//
// Costs are those of a rank on average, and every stage has its share of them by its time. The cap
// is in micro-batches through a rank on average, one for all ranks; what ranks have room for
// differs, as their parameters and the sizes of their activations do. So there are up to three, the
// widest first: what the roomiest rank has room for, half of the way, and what every rank has room
// for whichever of its stages it holds. Nothing is promised: what an order holds is weighed.
#pragma once

#include "sched/tune/stages.hpp"

namespace velo::sched::tune {

// What ranks have for activations, by rank, in one of the layout's placements.
struct room {
  placement of;
  std::vector<double> bytes;
};
std::vector<demand> demands_of(const velo_tuning_layout& layout, const parts& costs,
                               const std::vector<part>& stages, const std::vector<room>& rooms);

}  // namespace velo::sched::tune
