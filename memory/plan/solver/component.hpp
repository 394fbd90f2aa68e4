// A component: buffers that overlap in time with each other, directly or through others, and with
// no buffer outside. It holds its best placement so far and lowers it.
//
// Heuristics come first; then orders that learn and runs of search take turns, and search gets
// nearly all of the time. Every other run of search aims between the goal and the best height so
// far, closer to the goal while such runs succeed and further from it while they fail. Several
// threads may each have a component of the same buffers; their numbers make them search
// differently.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/plan/solver/orders.hpp"
#include "memory/plan/solver/placement.hpp"
#include "memory/plan/solver/problem.hpp"
#include "memory/plan/solver/random.hpp"
#include "memory/plan/solver/search.hpp"
#include "memory/plan/solver/sweep.hpp"

namespace velo::memory {

constexpr std::size_t most_in_orders = 20000;  // buffers for the O(n * n) heuristics

// The end of the search: the time is up, or a thread has finished the problem.
class plan_deadline {
 public:
  using clock = std::chrono::steady_clock;
  explicit plan_deadline(double seconds);
  bool over() const { return settled_.load(std::memory_order_relaxed) || clock::now() >= end_; }
  void settle() { settled_.store(true, std::memory_order_relaxed); }

 private:
  clock::time_point end_;
  std::atomic<bool> settled_{false};
};

class plan_component {
 public:
  // members: indexes of its buffers among all; number: of the thread, from 0.
  plan_component(const std::vector<lifetime>& all, std::vector<std::int32_t> members,
                 std::uint64_t seed, std::size_t number);

  std::int64_t height() const { return height_; }
  void try_heuristics(std::int64_t goal, const plan_deadline& end);
  // Runs the search once and creates it at the first call. Returns false if no run can lower this
  // component any more.
  bool search_once(std::int64_t goal, const plan_deadline& end);
  void write(std::vector<std::int64_t>& offsets) const;  // by buffer among all

 private:
  void keep(std::vector<std::int64_t> offsets);
  void try_both_ends(const plan_sweep& sweep, std::int64_t goal, const plan_deadline& end);
  void prepare();
  void run(std::int64_t ceiling, bool halfway, const plan_deadline& end);
  // Heights are multiples of the grain: a ceiling is rounded down to one.
  std::int64_t grained(std::int64_t ceiling) const { return ceiling - ceiling % grain_; }

  std::vector<std::int32_t> members_;
  std::vector<lifetime> buffers_;
  std::vector<std::int64_t> offsets_;
  std::int64_t grain_ = 0;  // divides all sizes
  std::int64_t height_ = 0;
  std::int64_t least_ = 0;  // no placement of this component is lower
  std::uint64_t seed_;
  plan_random random_;
  std::unique_ptr<plan_orders> orders_;
  bool prepared_ = false;
  plan_problem problem_;
  std::unique_ptr<plan_search> search_;
  std::int64_t nodes_ = 0;
  std::size_t runs_ = 0;
  const std::size_t shift_;  // the first strategy of the list
  double nearness_ = 0.5;    // a halfway run's aim between goal (0) and height (1)
};

}  // namespace velo::memory
