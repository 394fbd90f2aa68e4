// Sums over stages, and minima over ranks.
#include "sched/tune/demands.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/index.hpp"
#include "sched/pipeline/kinds.hpp"

namespace velo::sched::tune {
namespace {

sched::costs costs_of(const velo_tuning_layout& layout, const layer_costs& costs,
                      const std::vector<layer_cost>& stages) {
  sched::costs result;
  layer_cost all;
  for (const layer_cost& one : stages) {
    all += one;
    result.shares.push_back(one.seconds());
  }
  result.forward = all.forward / layout.pp;
  result.input = all.input / layout.pp;
  result.weight = all.weight / layout.pp;
  result.latency = costs.message_seconds;
  return result;
}

// Caps in micro-batches through an average rank, which takes `average` seconds.
class caps {
 public:
  caps(const std::vector<layer_cost>& stages, double average)
      : stages_(stages), average_(average) {}

  void add(const std::vector<std::int32_t>& own, double bytes) {
    double cap = std::numeric_limits<double>::max(), all = 0;
    for (const std::int32_t s : own) {
      const layer_cost& stage = stages_[core::at(s)];
      all += stage.seconds() / average_;
      cap = std::min(cap, bytes / stage.kept * stage.seconds() / average_);
    }
    heaviest_ = std::max(heaviest_, all);
    least_ = std::min(least_, cap);
    most_ = std::max(most_, cap);
  }

  // The caps to try: at least one micro-batch through the heaviest rank, at most two for each rank,
  // beyond which nothing gets shorter.
  std::vector<double> list(const velo_tuning_layout& layout) const {
    const double bound = heaviest_ * std::min(2 * layout.pp, layout.microbatches);
    std::vector<double> all;
    for (const double one : {most_, (least_ + most_) / 2, least_}) {
      const double cap = std::clamp(one, heaviest_, bound);
      if (all.empty() || cap < all.back() - 0.5 / layout.vpp) all.push_back(cap);
    }
    return all;
  }

 private:
  const std::vector<layer_cost>& stages_;
  const double average_;
  double heaviest_ = 0, most_ = 0, least_ = std::numeric_limits<double>::max();
};

// Kinds that count stages as if all were alike get the cap rounded to a count of stages.
double counted(const velo_tuning_layout& layout, double cap) {
  if (row_of(layout.kind).has(weighs_stages)) return cap;
  return (std::floor(cap * layout.vpp) + 0.99) / layout.vpp;
}

}  // namespace

std::vector<demand> demands_of(const velo_tuning_layout& layout, const layer_costs& costs,
                               const std::vector<layer_cost>& stages,
                               const std::vector<room>& rooms) {
  const sched::costs given = costs_of(layout, costs, stages);
  caps found(stages, given.forward + given.input + given.weight);
  for (const room& one : rooms)
    for (std::size_t rank = 0; rank < one.of.size(); ++rank)
      found.add(one.of[rank], one.bytes[rank]);
  std::vector<demand> result;
  for (const double cap : found.list(layout)) result.push_back({given, counted(layout, cap)});
  return result;
}

}  // namespace velo::sched::tune
