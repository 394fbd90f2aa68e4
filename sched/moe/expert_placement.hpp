// The ranks that each expert lies on: copies of the busy ones, and equal work for all ranks.
//
// Copies. An expert's rows are dealt evenly to its copies, so a copy has at most ceil(rows /
// copies). The next copy always goes to the expert whose copies have the most rows: no other choice
// of as many copies has a smaller largest share. Copies cost memory and sums of gradients, so their
// number grows from none, by an eighth a step, until the ranks are even enough or no place is left.
//
// Places. The copies, largest share first, are dealt in rounds of one a rank: the largest of a
// round goes to the rank with the fewest rows that has none of this expert. Ranks differ afterwards
// by at most the largest share, rounding aside: a round adds to their difference no more than its
// own largest share less its smallest, and these ranges do not overlap. So the busiest rank has at
// most the mean and the largest share. Then copies change places with those of the busiest rank as
// long as that makes it less busy.
//
// Moves. Which rank gets which part is free; parts go to the ranks that have most of them already.
// Where the busiest rank would have no fewer rows than now, nothing moves.
//
// Invariant: each expert lies somewhere, on a rank at most once; equal input gives an equal plan.
// Cost: O(log places) packings of O(places log places + ranks x places), in each of which at most
// 2^20 exchanges are looked at. Sources: DeepSeek-AI's EPLB (copies of busy experts, then packing);
// longest processing time first (Graham 1969) with equal numbers of parts.
#pragma once

#include <cstdint>
#include <vector>

namespace velo::sched {

struct expert_places {
  std::int64_t ranks, slots;             // of a rank
  std::vector<std::vector<int>> placed;  // by rank, at most `slots` experts in rising order

  std::vector<std::vector<int>> ranks_of(std::int64_t experts) const;  // by expert, rising
};

// The rows of copy `index` of `copies`.
inline std::int64_t rows_of_copy(std::int64_t rows, std::int64_t index, std::int64_t copies) {
  return rows / copies + (index < rows % copies ? 1 : 0);
}

// Rows of each rank.
std::vector<std::int64_t> rows_by_rank(const expert_places& of,
                                       const std::vector<std::int64_t>& loads);

// Whether the busiest rank has at most (1 + tolerance) times the mean, or one row more than it.
bool is_even(const std::vector<std::int64_t>& rows, double tolerance);

// ranks * slots must be at least the experts. `current`: where experts lie now, or empty.
expert_places place_experts(const std::vector<std::int64_t>& loads, std::int64_t ranks,
                            std::int64_t slots, double tolerance,
                            const std::vector<std::vector<int>>& current);

}  // namespace velo::sched
