// Rounds of adaptive attention: which rank computes which pair of blocks when.
//
// A pair is a task: the block of queries of its row, the keys of its column, both numbers of ranks.
// In a round a rank computes one task at most: of its own row, whose keys and values come (two
// units at both ranks), or of its own column, whose queries come (one unit) and whose result
// returns (one more, counted in the next two rounds: a return travels in the second, the usual rule
// counts it in the first). A rank sends its queries once a round. No rank has more than six units
// in a round, nor more than twelve in the gradient, which computes the same tasks in the same
// rounds. Invariant: every pair is in one round. Every round takes a task, since a rank begins it
// with two units of returns at most.
//
// Several orders are tried, some of them shuffled: the usual rule's, ranks with their own block
// last, ranks with most messages left first. The one with fewest rounds wins. Cost: each try visits
// the pairs of ranks once a round.
#pragma once

#include <vector>

#include "sched/parallel/context/adaptive/visibility.hpp"

namespace velo::sched {

struct round_task {
  std::int64_t row, column;
  std::int64_t rank;  // one of these

  bool moves_keys() const { return rank == row && row != column; }
  bool moves_queries() const { return rank != row; }
};

using task_rounds = std::vector<std::vector<round_task>>;

task_rounds rounds_of(const visibility& pairs);

// The number of rounds that the usual rule needs, whose first choices ignore the limit: of a rank
// in round t the column rank + t.
std::int64_t rounds_of_rule(const visibility& pairs);

}  // namespace velo::sched
