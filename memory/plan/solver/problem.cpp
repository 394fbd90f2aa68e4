// The structure is found in one pass over the beginnings and ends in the order of time.
#include "memory/plan/solver/problem.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace velo::memory {
namespace {

struct event {
  std::int64_t time;
  bool begins;  // at one time ends come first: [lower, upper) is half open
  std::int32_t buffer;
};

std::vector<event> events_of(const std::vector<lifetime>& all,
                             const std::vector<std::int32_t>& named) {
  std::vector<event> events;
  events.reserve(2 * named.size());
  for (std::size_t i = 0; i < named.size(); ++i) {
    events.push_back({all[named[i]].lower, true, static_cast<std::int32_t>(i)});
    events.push_back({all[named[i]].upper, false, static_cast<std::int32_t>(i)});
  }
  std::sort(events.begin(), events.end(), [](const event& a, const event& b) {
    return std::tie(a.time, a.begins, a.buffer) < std::tie(b.time, b.begins, b.buffer);
  });
  return events;
}

// A set of buffers that finds, adds and removes in O(1) and is walked in O(size).
class live_set {
 public:
  explicit live_set(std::size_t buffers) : place_(buffers) {}
  void add(std::int32_t buffer) {
    place_[buffer] = members_.size();
    members_.push_back(buffer);
  }
  void remove(std::int32_t buffer) {
    members_[place_[buffer]] = members_.back();
    place_[members_.back()] = place_[buffer];
    members_.pop_back();
  }
  const std::vector<std::int32_t>& members() const { return members_; }

 private:
  std::vector<std::size_t> place_;
  std::vector<std::int32_t> members_;
};

// A moment lies wherever an end follows a beginning, since the live set is maximal there.
bool find_moments(plan_problem& problem, const std::vector<event>& events, std::size_t most) {
  live_set live(problem.sizes.size());
  bool grew = false;
  for (const event& e : events) {
    if (e.begins) {
      live.add(e.buffer);
      grew = true;
      continue;
    }
    if (grew) {
      const int moment = problem.moment_count();
      for (const std::int32_t i : live.members()) {
        if (problem.first[i] < 0) problem.first[i] = moment;
        problem.last[i] = moment;
      }
      std::vector<std::int32_t>& numbers = problem.moments.numbers;
      numbers.insert(numbers.end(), live.members().begin(), live.members().end());
      problem.moments.begins.push_back(numbers.size());
      if (numbers.size() > most) return false;
      grew = false;
    }
    live.remove(e.buffer);
  }
  return true;
}

// Buffer i overlaps the buffers of its first moment and those that begin in its later ones.
bool find_overlaps(plan_problem& problem, std::size_t most) {
  const int n = problem.buffers();
  std::vector<std::vector<std::int32_t>> beginning(problem.moment_count());
  for (int i = 0; i < n; ++i) beginning[problem.first[i]].push_back(i);
  for (int i = 0; i < n; ++i) {
    for (const std::int32_t other : problem.moments[problem.first[i]])
      if (other != i) problem.overlapping.numbers.push_back(other);
    for (int m = problem.first[i] + 1; m <= problem.last[i]; ++m)
      for (const std::int32_t other : beginning[m]) problem.overlapping.numbers.push_back(other);
    problem.overlapping.begins.push_back(problem.overlapping.numbers.size());
    if (problem.overlapping.numbers.size() > most) return false;
  }
  return true;
}

void find_duplicates(plan_problem& problem) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int64_t>, std::int32_t> seen;
  for (int i = 0; i < problem.buffers(); ++i) {
    const auto key = std::make_tuple(problem.first[i], problem.last[i], problem.sizes[i]);
    const auto found = seen.find(key);
    problem.duplicate.push_back(found == seen.end() ? -1 : found->second);
    seen[key] = i;
  }
}

}  // namespace

plan_problem make_problem(const std::vector<lifetime>& all, const std::vector<std::int32_t>& named,
                          std::size_t most) {
  plan_problem problem;
  for (const std::int32_t i : named) problem.sizes.push_back(all[i].size);
  problem.first.assign(named.size(), -1);
  problem.last.assign(named.size(), -1);
  if (!find_moments(problem, events_of(all, named), most) || !find_overlaps(problem, most))
    return {};
  find_duplicates(problem);
  return problem;
}

std::vector<std::vector<std::int32_t>> separate(const std::vector<lifetime>& all) {
  std::vector<std::int32_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::tie(all[a].lower, a) < std::tie(all[b].lower, b);
  });
  std::vector<std::vector<std::int32_t>> groups;
  std::int64_t end = 0;
  for (const std::int32_t i : order) {
    if (groups.empty() || all[i].lower >= end) {
      groups.emplace_back();
      end = all[i].upper;
    }
    groups.back().push_back(i);
    end = std::max(end, all[i].upper);
  }
  return groups;
}

}  // namespace velo::memory
