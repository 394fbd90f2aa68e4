// The problem is divided into components of buffers that overlap in time. The component with the
// highest placement is searched by one or several threads, which all end when one succeeds.
#include "memory/plan/solver/placement.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "core/failure.hpp"
#include "core/stream/threads.hpp"
#include "memory/plan/solver/component.hpp"
#include "memory/plan/solver/problem.hpp"

namespace velo::memory {
namespace {

// One thread's attempt at the whole problem.
class attempt {
 public:
  attempt(const std::vector<lifetime>& buffers, const plan_limits& limits, std::size_t number)
      : buffers_(buffers), lower_bound_(largest_live(buffers)) {
    goal_ = std::max(lower_bound_, limits.capacity);
    for (std::vector<std::int32_t>& members : separate(buffers))
      components_.emplace_back(buffers, std::move(members), limits.seed, number);
  }

  void try_heuristics(const plan_deadline& end) {
    for (plan_component& g : components_) g.try_heuristics(goal_, end);
  }
  bool is_low_enough() const {
    return components_.empty() || components_[highest()].height() <= goal_;
  }

  // The highest component decides the height, so it alone is searched. Once it cannot be lowered,
  // all threads end.
  void search(plan_deadline& end) {
    while (!components_.empty() && !end.over()) {
      if (!components_[highest()].search_once(goal_, end)) end.settle();
    }
  }

  placement result() const {
    placement made;
    made.lower_bound = lower_bound_;
    made.height = components_.empty() ? 0 : components_[highest()].height();
    made.offsets.resize(buffers_.size());
    for (const plan_component& g : components_) g.write(made.offsets);
    return made;
  }

 private:
  std::size_t highest() const {
    const auto lower = [](const plan_component& a, const plan_component& b) {
      return a.height() < b.height();
    };
    return std::max_element(components_.begin(), components_.end(), lower) - components_.begin();
  }

  const std::vector<lifetime>& buffers_;
  std::int64_t lower_bound_, goal_ = 0;
  std::vector<plan_component> components_;
};

// An attempt on a thread of its own, which ends with this object at the latest.
class helper {
 public:
  helper(const std::vector<lifetime>& buffers, const plan_limits& limits, std::size_t number,
         plan_deadline& end)
      : buffers_(buffers), limits_(limits), number_(number), end_(end) {
    thread_.start("velo/plan", &work, this);
  }
  ~helper() {
    end_.settle();
    thread_.join();
  }
  helper(const helper&) = delete;
  helper& operator=(const helper&) = delete;

  // Ends the attempt. Its result has no offsets if it lacked memory.
  placement& result() {
    end_.settle();
    thread_.join();
    return made_;
  }

 private:
  static void* work(void* argument) noexcept {
    auto& self = *static_cast<helper*>(argument);
    try {
      attempt mine(self.buffers_, self.limits_, self.number_);
      mine.try_heuristics(self.end_);
      mine.search(self.end_);
      self.made_ = mine.result();
    } catch (const std::bad_alloc&) {  // the other attempts go on
    }
    return nullptr;
  }

  const std::vector<lifetime>& buffers_;
  const plan_limits& limits_;
  const std::size_t number_;
  plan_deadline& end_;
  placement made_;
  core::native_thread thread_;
};

}  // namespace

std::int64_t largest_live(const std::vector<lifetime>& buffers) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // time, then ends before beginnings
  changes.reserve(2 * buffers.size());
  for (const lifetime& b : buffers) {
    changes.emplace_back(b.lower, b.size);
    changes.emplace_back(b.upper, -b.size);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t live = 0, most = 0;
  for (const auto& change : changes) most = std::max(most, live += change.second);
  return most;
}

placement place(const std::vector<lifetime>& buffers, const plan_limits& limits) {
  plan_deadline end(limits.seconds);
  attempt mine(buffers, limits, 0);
  mine.try_heuristics(end);
  std::vector<std::unique_ptr<helper>> helpers;
  if (!mine.is_low_enough() && !end.over() && buffers.size() <= most_in_orders) {
    try {
      for (int number = 1; number < limits.threads; ++number)
        helpers.push_back(std::make_unique<helper>(buffers, limits, number, end));
    } catch (const core::failure&) {  // the system has no more threads
    }
  }
  mine.search(end);
  placement best = mine.result();
  for (std::unique_ptr<helper>& h : helpers) {
    placement& other = h->result();
    if (!other.offsets.empty() && other.height < best.height) best = std::move(other);
  }
  return best;
}

}  // namespace velo::memory
