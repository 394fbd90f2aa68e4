// Placement by orders that learn: a buffer that ends too high is placed earlier in the next round.
//
// Buffers are placed one after another (greedy.hpp). Each that ends above the goal moves towards
// the front by a random fraction of its position, and all are placed again. A few buffers decide
// the height of most problems, and moving finds them. Several orders learn side by side; the one
// that improved last has the next round. A round costs O(n * n).
#pragma once

#include <cstdint>
#include <vector>

#include "memory/plan/solver/greedy.hpp"
#include "memory/plan/solver/placement.hpp"
#include "memory/plan/solver/random.hpp"

namespace velo::memory {

class plan_orders {
 public:
  plan_orders(const std::vector<lifetime>& buffers, std::uint64_t seed);

  // The next placement; its buffers above `goal` move.
  std::vector<std::int64_t> next(std::int64_t goal);

  // Rounds since some order got better, at least.
  int stalled_rounds() const { return orders_.empty() ? 0 : least_stalled().stalled; }

 private:
  struct learner {
    std::vector<std::int32_t> order;
    plan_fit fit;
    std::int64_t best = 0;  // the lowest height; 0: none yet
    int stalled = 0;        // rounds since then
  };
  const learner& least_stalled() const;
  void learn(learner& by, const std::vector<std::int64_t>& offsets, std::int64_t goal);

  const std::vector<lifetime>& buffers_;
  std::vector<learner> orders_;
  plan_random random_;
};

}  // namespace velo::memory
