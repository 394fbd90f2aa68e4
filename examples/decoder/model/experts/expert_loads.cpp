// Counts as they grow, and their sums.
#include "examples/decoder/model/experts/expert_loads.hpp"

#include <algorithm>
#include <numeric>

namespace decoder {

expert_loads::expert_loads(const member& rank, const model_settings& of)
    : rank_(rank),
      experts_(static_cast<std::size_t>(of.experts)),
      counts_(static_cast<std::size_t>(of.layers) * experts_) {}

void expert_loads::begin() {
  std::fill(counts_.begin(), counts_.end(), 0);
}

void expert_loads::add(std::size_t layer, const std::int64_t* counts) {
  for (std::size_t i = 0; i < experts_; ++i) counts_[layer * experts_ + i] += counts[i];
}

void expert_loads::end() {
  rank_.sum_at_leader(counts_.data(), static_cast<std::int64_t>(counts_.size()));
}

double expert_loads::share(std::size_t layer, std::size_t expert) const {
  const auto first = counts_.begin() + static_cast<std::ptrdiff_t>(layer * experts_);
  const std::int64_t all =
      std::accumulate(first, first + static_cast<std::ptrdiff_t>(experts_), std::int64_t{0});
  if (all == 0) return 0;  // of a step of padding
  return static_cast<double>(count(layer, expert)) * static_cast<double>(experts_) /
         static_cast<double>(all);
}

double expert_loads::busiest() const {
  double most = 0;
  for (std::size_t layer = 0; layer < layers(); ++layer)
    for (std::size_t i = 0; i < experts_; ++i) most = std::max(most, share(layer, i));
  return most;
}

}  // namespace decoder
