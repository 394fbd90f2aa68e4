// A rank is a position in the order, lowered for buffers that move; sorting by rank gives the next
// order.
#include "memory/plan/solver/orders.hpp"

#include <algorithm>

namespace velo::memory {

plan_orders::plan_orders(const std::vector<lifetime>& buffers, std::uint64_t seed)
    : buffers_(buffers), random_(seed) {
  for (const plan_order first :
       {plan_order::area, plan_order::size, plan_order::length, plan_order::begin})
    for (const plan_fit fit : {plan_fit::lowest, plan_fit::best})
      orders_.push_back({sorted(buffers, first), fit});
}

const plan_orders::learner& plan_orders::least_stalled() const {
  return *std::min_element(orders_.begin(), orders_.end(), [](const learner& a, const learner& b) {
    return a.stalled < b.stalled || (a.stalled == b.stalled && a.best < b.best);
  });
}

std::vector<std::int64_t> plan_orders::next(std::int64_t goal) {
  learner& by = orders_[&least_stalled() - orders_.data()];
  std::vector<std::int64_t> offsets = place_in_order(buffers_, by.order, by.fit);
  const std::int64_t height = height_of(buffers_, offsets);
  if (by.best == 0 || height < by.best) {
    by.best = height;
    by.stalled = 0;
  } else {
    ++by.stalled;
  }
  learn(by, offsets, goal);
  return offsets;
}

void plan_orders::learn(learner& by, const std::vector<std::int64_t>& offsets, std::int64_t goal) {
  std::vector<double> ranks(buffers_.size());
  for (std::size_t x = 0; x < by.order.size(); ++x) {
    const std::int32_t i = by.order[x];
    ranks[i] = static_cast<double>(x);
    if (offsets[i] + buffers_[i].size > goal) ranks[i] *= random_.unit();
  }
  std::stable_sort(by.order.begin(), by.order.end(),
                   [&](std::int32_t a, std::int32_t b) { return ranks[a] < ranks[b]; });
}

}  // namespace velo::memory
