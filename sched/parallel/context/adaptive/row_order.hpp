// The order of rows in which blocks see fewest others.
//
// The mask is taken in at most 1024 contiguous parts. The candidates are their own order, and the
// clusters of 2 to 8 one behind the other: a part's features are its row of the mask along the ten
// principal components of all rows (orthogonal iteration), clustered by k-means. Cut into blocks,
// the order with fewest pairs that see each other wins, then the one with the smallest deviation
// of pairs by rank; of equals the first, so that rows move only where it helps. Invariant: the same
// mask gives the same order on every rank: sums have a fixed order, and ties fall to the first.
// Cost: some 50 products of the coarse mask and ten vectors, and 800 assignments to clusters.
#pragma once

#include <vector>

#include "sched/parallel/context/plan.hpp"

namespace velo::sched {

// Blocks for ring ranks: of each the rows, ascending. The mask must be there.
std::vector<rows> adaptive_blocks(const sequence_shape& of, std::int64_t ring);

}  // namespace velo::sched
