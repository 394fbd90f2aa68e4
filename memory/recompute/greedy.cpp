// The greedy schedule: one pass that frees outputs when it needs memory.
#include <algorithm>
#include <limits>

#include "core/index.hpp"
#include "memory/recompute/graph.hpp"

namespace velo::memory {

void find_takers(op_graph& graph) {
  const int count = graph.size();
  std::vector<std::size_t> ends(static_cast<std::size_t>(count) + 1, 0);
  for (const std::int32_t from : graph.inputs.numbers) ++ends[core::at(from) + 1];
  for (int i = 0; i < count; ++i) ends[i + 1] += ends[i];
  graph.takers.begins = ends;
  graph.takers.numbers.resize(graph.inputs.numbers.size());
  for (std::int32_t i = 0; i < count; ++i)
    for (const std::int32_t from : graph.inputs[i]) graph.takers.numbers[ends[from]++] = i;
}

double seconds_once(const op_graph& graph) {
  double sum = 0;
  for (const double s : graph.seconds) sum += s;
  return sum;
}

std::int64_t least_for_one(const op_graph& graph) {
  std::int64_t most = 0, kept = 0;
  for (std::int32_t i = 0; i < graph.size(); ++i) {
    std::int64_t sum = graph.bytes[i] + graph.workspace[i];
    for (const std::int32_t from : graph.inputs[i]) sum += graph.bytes[from];
    most = std::max(most, sum);
    if (graph.keep[i] != 0) kept += graph.bytes[i];
  }
  return std::max(most, kept);
}

namespace {

constexpr std::size_t most_freed = 32;  // freed neighbors that a rule which looks ahead counts

class greedy_run {
 public:
  greedy_run(const op_graph& graph, std::int64_t budget, eviction rule, const greedy_limits& limits)
      : graph_(graph),
        budget_(budget),
        rule_(rule),
        limits_(limits),
        there_(graph.size(), 0),
        ran_(graph.size(), 0),
        pins_(graph.size(), 0),
        used_at_(graph.size(), 0),
        next_taker_(graph.size(), 0),
        place_(graph.size(), -1),
        cost_(graph.size(), -1),
        seen_(graph.size(), 0),
        to_come_(seconds_once(graph)) {}

  std::optional<std::vector<op_step>> run() {
    for (std::int32_t i = 0; i < graph_.size(); ++i) {
      now_ = i;
      if (!make(i)) return std::nullopt;
      for (const std::int32_t from : graph_.inputs[i]) free_if_done(from);
      free_if_done(i);
    }
    now_ = graph_.size();
    for (std::int32_t i = 0; i < graph_.size(); ++i) {  // outputs to keep may have been freed
      if (graph_.keep[i] == 0) continue;
      if (there_[i] == 0 && !make(i)) return std::nullopt;
      pin(i, 1);
    }
    for (std::int32_t i = 0; i < graph_.size(); ++i)
      if (graph_.keep[i] == 0 && there_[i] != 0) free(i);
    return std::move(steps_);
  }

 private:
  // Computes an output after its missing inputs.
  bool make(std::int32_t wanted) {
    open_ = {wanted};
    while (!open_.empty()) {
      const std::int32_t op = open_.back();
      if (there_[op] != 0 && op != wanted) {  // computed meanwhile for another operation
        open_.pop_back();
        continue;
      }
      std::int32_t missing = -1;
      for (const std::int32_t from : graph_.inputs[op])
        if (there_[from] == 0) missing = from;
      if (missing >= 0) {
        for (const std::int32_t from : graph_.inputs[op]) pin(from, 1);
        open_.push_back(missing);
        pinned_for_.push_back(op);
        continue;
      }
      while (!pinned_for_.empty() && pinned_for_.back() == op) {
        for (const std::int32_t from : graph_.inputs[op]) pin(from, -1);
        pinned_for_.pop_back();
      }
      if (!compute(op)) return false;
      open_.pop_back();
    }
    return true;
  }

  void pin(std::int32_t op, int by) { pins_[op] += by; }

  bool compute(std::int32_t op) {
    for (const std::int32_t from : graph_.inputs[op]) {
      pin(from, 1);
      used_at_[from] = clock_;
    }
    const bool goes_on = steps_.size() < limits_.steps && clock_ + to_come_ < limits_.seconds &&
                         work_ < limits_.work;
    const bool fits = goes_on && make_room(graph_.bytes[op] + graph_.workspace[op]);
    for (const std::int32_t from : graph_.inputs[op]) pin(from, -1);
    if (!fits) return false;
    steps_.push_back({op, true});
    clock_ += graph_.seconds[op];
    used_at_[op] = clock_;
    if (ran_[op] == 0) to_come_ -= graph_.seconds[op];
    ran_[op] = 1;
    there_[op] = 1;
    live_ += graph_.bytes[op];
    place_[op] = static_cast<std::int32_t>(present_.size());
    present_.push_back(op);
    forget_costs(op);
    if (op != now_)
      for (const std::int32_t from : graph_.inputs[op]) free_if_done(from);
    return true;
  }

  bool make_room(std::int64_t bytes) {
    while (live_ + bytes > budget_) {
      std::int32_t worst = -1;
      double least = std::numeric_limits<double>::infinity();
      for (const std::int32_t op : present_) {
        if (pins_[op] > 0 || graph_.bytes[op] == 0) continue;
        const double score = score_of(op);
        if (score < least || (score == least && op < worst)) {
          least = score;
          worst = op;
        }
      }
      if (worst < 0) return false;
      free(worst);
    }
    return true;
  }

  double score_of(std::int32_t op) {
    if (cost_[op] < 0) cost_[op] = graph_.seconds[op] + freed_around(op);
    const auto bytes = static_cast<double>(graph_.bytes[op]);
    constexpr double moment = 1e-30;  // the time since the last use, if that was just now
    if (rule_ == eviction::past)
      return cost_[op] / (bytes * std::max(clock_ - used_at_[op], moment));
    const std::int32_t next = next_use(op);
    if (next == graph_.size() && graph_.keep[op] == 0) return 0;
    const double away = next - now_ + 1;
    return cost_[op] / (bytes * (rule_ == eviction::far ? away * away : away));
  }

  // The first coming operation that takes an output; the number of operations if there is none.
  std::int32_t next_use(std::int32_t op) {
    const auto takers = graph_.takers[op];
    std::int32_t& at = next_taker_[op];
    const auto count = static_cast<std::int32_t>(takers.end() - takers.begin());
    while (at < count && (takers.begin()[at] < now_ || ran_[takers.begin()[at]] != 0)) ++at;
    return at < count ? takers.begin()[at] : graph_.size();
  }

  void free_if_done(std::int32_t op) {
    if (there_[op] != 0 && pins_[op] == 0 && graph_.keep[op] == 0 && next_use(op) == graph_.size())
      free(op);
  }

  void free(std::int32_t op) {
    steps_.push_back({op, false});
    there_[op] = 0;
    live_ -= graph_.bytes[op];
    present_[place_[op]] = present_.back();
    place_[present_.back()] = place_[op];
    present_.pop_back();
    forget_costs(op);
  }

  bool is_freed(std::int32_t op) const { return ran_[op] != 0 && there_[op] == 0; }

  // Seconds of the freed operations before this one and, with the rule `past`, after it.
  double freed_around(std::int32_t op) {
    const std::size_t most = rule_ == eviction::past ? steps_.size() + 1 : most_freed;
    double sum = 0;
    std::size_t count = 0;
    const auto add = [&](std::int32_t neighbor) {
      if (!is_freed(neighbor)) return true;
      sum += graph_.seconds[neighbor];
      return ++count < most;
    };
    walk(op, graph_.inputs, add);
    if (rule_ == eviction::past) walk(op, graph_.takers, add);
    return sum;
  }

  // Forgets the costs of all operations that may count this one among their neighbors. A rule that
  // counts at most most_freed operations looks no farther than that many steps.
  void forget_costs(std::int32_t op) {
    cost_[op] = -1;
    const auto forget = [&](std::int32_t neighbor) {
      cost_[neighbor] = -1;
      return true;
    };
    if (rule_ == eviction::past) {
      walk(op, graph_.takers, forget);
      walk(op, graph_.inputs, forget);
    } else {
      walk_neighbors(op, graph_.takers, most_freed, forget);
    }
  }

  // Walks over freed operations in one direction and calls visit(op) for each of them and for the
  // operations at their ends, until it returns false.
  template <class F>
  void walk(std::int32_t from, const number_lists& neighbors, F&& visit) {
    ++walks_;
    walk_ = {from};
    while (!walk_.empty()) {
      const std::int32_t op = walk_.back();
      walk_.pop_back();
      if (!step(op, neighbors, visit)) return;
    }
  }

  // The same, nearest first, up to `most` steps away.
  template <class F>
  void walk_neighbors(std::int32_t from, const number_lists& neighbors, std::size_t most,
                      F&& visit) {
    ++walks_;
    walk_ = {from};
    // [begin, end): the operations of the walk `away` steps away.
    std::size_t away = 0, begin = 0, end = 1;
    for (; begin < end && away < most; ++away, begin = end, end = walk_.size())
      for (std::size_t i = begin; i < end; ++i) step(walk_[i], neighbors, visit);
  }

  template <class F>
  bool step(std::int32_t op, const number_lists& neighbors, F&& visit) {
    for (const std::int32_t next : neighbors[op]) {
      ++work_;
      if (seen_[next] == walks_) continue;
      seen_[next] = walks_;
      if (!visit(next)) return false;
      if (is_freed(next)) walk_.push_back(next);
    }
    return true;
  }

  const op_graph& graph_;
  const std::int64_t budget_;
  const eviction rule_;
  const greedy_limits limits_;
  std::vector<std::uint8_t> there_, ran_;
  std::vector<std::int32_t> pins_;
  std::vector<double> used_at_;
  std::vector<std::int32_t> next_taker_;
  std::vector<std::int32_t> place_;  // in `present_`
  std::vector<double> cost_;         // -1: unknown
  std::vector<std::int64_t> seen_;   // the last walk that visited the operation
  std::vector<std::int32_t> present_, open_, pinned_for_, walk_;
  std::vector<op_step> steps_;
  std::int64_t walks_ = 0, work_ = 0;
  std::int64_t live_ = 0;
  std::int32_t now_ = 0;
  double clock_ = 0;
  double to_come_;  // seconds of the first runs to come
};

}  // namespace

std::optional<std::vector<op_step>> run_greedily(const op_graph& graph, std::int64_t budget,
                                                 eviction rule, const greedy_limits& limits) {
  return greedy_run(graph, budget, rule, limits).run();
}

}  // namespace velo::memory
