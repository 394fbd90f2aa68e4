// The order in which heuristics and search take turns, their aims, and how long each runs.
#include "memory/plan/solver/component.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "memory/plan/solver/greedy.hpp"

namespace velo::memory {
namespace {

constexpr std::size_t most_in_lists = 32 << 20;  // numbers in a list of the search's problem
constexpr std::int64_t first_nodes = 100;        // of a run in the first round
constexpr std::int64_t closeness = 20000;        // sweeps end at a gap of goal / closeness
constexpr int most_stalled_rounds =
    20;                              // rounds of orders that may get no better before search begins
constexpr int rounds_per_run = 1;    // of orders, for each run of search
constexpr int runs_per_halfway = 1;  // runs at the goal for each halfway run

// The first runs try these strategies, which together solve most problems; later runs draw one at
// random.
using moment = search_strategy::moment;
using buffer = search_strategy::buffer;
constexpr std::array<search_strategy, 12> first_strategies = {{
    {moment::lowest, buffer::longest, true, 0},
    {moment::low, buffer::longest, true, 0},
    {moment::low_tight, buffer::longest, true, 0},
    {moment::tight, buffer::weighted_longest, false, 0},
    {moment::low_half_tight, buffer::weighted_longest, true, 0},
    {moment::lowest, buffer::largest, false, 0},
    {moment::low, buffer::weighted_longest, false, 0},
    {moment::low_half_tight, buffer::longest, true, 0},
    {moment::half_low, buffer::weighted_longest, false, 0},
    {moment::lowest, buffer::weighted_longest, true, 0},
    {moment::low_tight, buffer::weighted_longest, true, 0},
    {moment::tight, buffer::longest, false, 0},
}};
constexpr std::size_t strategies = first_strategies.size();

// Run lengths 1 1 2 1 1 2 4 .. take at most a logarithmic factor longer than the best fixed length,
// whatever that is (Luby, Sinclair, Zuckerman 1993).
std::int64_t luby(std::size_t i) {
  std::size_t period = 1;
  while (period < i) period = 2 * period + 1;
  while (period != i) {  // i lies in one of the two equal halves before the period's last
    period /= 2;
    if (i > period) i -= period;
  }
  return static_cast<std::int64_t>((period + 1) / 2);
}

search_strategy drawn_strategy(plan_random& random) {
  search_strategy strategy;
  strategy.where = static_cast<moment>(random.below(6));
  strategy.what = static_cast<buffer>(random.below(4));
  strategy.walls = random.below(2) == 1;
  strategy.noise = 0.3;
  return strategy;
}

}  // namespace

plan_deadline::plan_deadline(double seconds)
    : end_(clock::now() + std::chrono::duration_cast<clock::duration>(
                              std::chrono::duration<double>(std::min(seconds, 1e6)))) {}

plan_component::plan_component(const std::vector<lifetime>& all, std::vector<std::int32_t> members,
                               std::uint64_t seed, std::size_t number)
    : members_(std::move(members)),
      seed_(seed + number),
      random_(seed_),
      shift_(number * strategies / 2) {
  for (const std::int32_t i : members_) buffers_.push_back(all[i]);
  for (const lifetime& b : buffers_) grain_ = std::gcd(grain_, b.size);
  least_ = largest_live(buffers_);
}

void plan_component::try_heuristics(std::int64_t goal, const plan_deadline& end) {
  const plan_sweep sweep(buffers_);
  keep(sweep.by_best_fit());
  goal = grained(std::max(goal, least_));
  try_both_ends(sweep, goal, end);
  if (buffers_.size() > most_in_orders) return;
  orders_ = std::make_unique<plan_orders>(buffers_, seed_);
  while (height_ > goal && !end.over() && orders_->stalled_rounds() < most_stalled_rounds)
    keep(orders_->next(goal));
}

bool plan_component::search_once(std::int64_t goal, const plan_deadline& end) {
  if (!prepared_) prepare();
  goal = grained(std::max(goal, least_));
  if (orders_ == nullptr && search_ == nullptr) return false;
  for (int round = 0; orders_ != nullptr && round < rounds_per_run; ++round)
    if (height_ > goal && !end.over()) keep(orders_->next(goal));
  if (height_ <= goal) return false;
  if (search_ == nullptr) return true;
  const std::int64_t between = grained(
      goal + static_cast<std::int64_t>(static_cast<double>(height_ - 1 - goal) * nearness_));
  const bool halfway = runs_ % (runs_per_halfway + 1) == runs_per_halfway && between > goal;
  run(halfway ? between : goal, halfway, end);
  return true;
}

void plan_component::write(std::vector<std::int64_t>& offsets) const {
  for (std::size_t x = 0; x < members_.size(); ++x) offsets[members_[x]] = offsets_[x];
}

void plan_component::keep(std::vector<std::int64_t> offsets) {
  const std::int64_t height = height_of(buffers_, offsets);
  if (!offsets_.empty() && height >= height_) return;
  height_ = height;
  offsets_ = std::move(offsets);
}

// Bisects for the lowest ceiling that a sweep reaches.
void plan_component::try_both_ends(const plan_sweep& sweep, std::int64_t goal,
                                   const plan_deadline& end) {
  std::int64_t low = goal, ceiling = goal;
  while (height_ > low + std::max(goal / closeness, grain_) && !end.over()) {
    for (const double fraction : {0.5, 0.7, 0.8, 0.9, 0.95, 0.98}) {
      std::vector<std::int64_t> offsets =
          sweep.from_both_ends(sweep.length_of(fraction), ceiling, [&] { return end.over(); });
      if (offsets.empty()) return;
      keep(std::move(offsets));
      if (height_ <= ceiling || end.over()) break;
    }
    if (height_ > ceiling) low = ceiling;
    ceiling = grained(low + (height_ - low) / 2);
  }
}

void plan_component::prepare() {
  prepared_ = true;
  std::vector<std::int32_t> every(buffers_.size());
  std::iota(every.begin(), every.end(), 0);
  problem_ = make_problem(buffers_, every, most_in_lists);
  nodes_ = first_nodes + 2 * problem_.buffers();
  if (problem_.buffers() > 0) search_ = std::make_unique<plan_search>(problem_);
}

void plan_component::run(std::int64_t ceiling, bool halfway, const plan_deadline& end) {
  const std::size_t round = runs_ / strategies;
  search_strategy strategy =
      round % 2 == 0 ? first_strategies[(runs_ + shift_) % strategies] : drawn_strategy(random_);
  if (round > 0) strategy.noise = 0.3;
  ++runs_;
  const search_result result = search_->run(ceiling, strategy, nodes_ * luby(round + 1),
                                            random_.next(), [&] { return end.over(); });
  if (result == search_result::found) {
    std::vector<std::int64_t> offsets = search_->offsets();
    if (buffers_.size() <= most_in_orders) push_down(buffers_, offsets);
    keep(std::move(offsets));
    nearness_ = std::max(0.3, nearness_ - 0.05);
  } else if (halfway) {
    nearness_ = std::min(0.95, nearness_ + 0.1);
  }
  if (result == search_result::impossible) least_ = std::max(least_, ceiling + grain_);
}

}  // namespace velo::memory
