// An A* search that minimizes either of two costs: seconds of repeated runs, or the peak of bytes.
#include "memory/recompute/exact.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace velo::memory {
namespace {

// A state as a number: bit `next`, and below it the set of outputs in memory.
using state = std::uint64_t;
using outputs = std::uint64_t;

int highest(std::uint64_t bits) {
  return 63 - __builtin_clzll(bits);
}

int lowest(std::uint64_t bits) {
  return __builtin_ctzll(bits);
}

constexpr outputs bit(int op) {
  return outputs{1} << op;
}

// The graph with sets of outputs in place of lists, and the sums that the bounds need.
struct masked_graph {
  explicit masked_graph(const op_graph& graph)
      : count(graph.size()),
        inputs(graph.size()),
        needed_from(graph.size() + 1),
        least_from(graph.size() + 1) {
    std::int64_t bytes_kept = 0;
    for (int i = 0; i < count; ++i) {
      if (graph.keep[i] != 0) {
        kept |= bit(i);
        bytes_kept += graph.bytes[i];
      }
      for (const std::int32_t from : graph.inputs[i]) inputs[i] |= bit(from);
    }
    needed_from[count] = kept;
    least_from[count] = bytes_kept;
    for (int i = count; i-- > 0;) {
      std::int64_t bytes = graph.bytes[i] + graph.workspace[i];
      for (const std::int32_t from : graph.inputs[i]) bytes += graph.bytes[from];
      needed_from[i] = needed_from[i + 1] | inputs[i];
      least_from[i] = std::max(least_from[i + 1], bytes);
    }
  }

  const int count;
  outputs kept = 0;
  std::vector<outputs> inputs;
  // Outputs that the operations from `next` on take, or that are to be kept.
  std::vector<outputs> needed_from;
  std::vector<std::int64_t> least_from;  // bytes that some operation from `next` on needs
};

// The cost: seconds of runs beyond the first ones. No run may exceed the budget.
class by_seconds {
 public:
  using value = double;
  by_seconds(const op_graph& graph, const masked_graph& masks, std::int64_t budget)
      : graph_(graph), masks_(masks), budget_(budget) {}

  bool may_run(int op, std::int64_t live) const {
    return live + graph_.bytes[op] + graph_.workspace[op] <= budget_;
  }
  double after(double spent, int op, bool is_first, std::int64_t) const {
    return is_first ? spent : spent + graph_.seconds[op];
  }
  // A lower bound: a missing output that is needed must be computed again, and so must its missing
  // inputs, which come before it.
  double at_least(double spent, int next, outputs there) const {
    const outputs missing = (bit(next) - 1) & ~there;
    outputs open = masks_.needed_from[next] & missing;
    while (open != 0) {
      const int op = highest(open);
      spent += graph_.seconds[op];
      open = (open & ~bit(op)) | (masks_.inputs[op] & missing);
    }
    return spent;
  }

 private:
  const op_graph& graph_;
  const masked_graph& masks_;
  const std::int64_t budget_;
};

// The cost: the peak of bytes so far.
class by_bytes {
 public:
  using value = std::int64_t;
  by_bytes(const op_graph& graph, const masked_graph& masks) : graph_(graph), masks_(masks) {}

  bool may_run(int, std::int64_t) const { return true; }
  std::int64_t after(std::int64_t peak, int op, bool, std::int64_t live) const {
    return std::max(peak, live + graph_.bytes[op] + graph_.workspace[op]);
  }
  std::int64_t at_least(std::int64_t peak, int next, outputs) const {
    return std::max(peak, masks_.least_from[next]);
  }

 private:
  const op_graph& graph_;
  const masked_graph& masks_;
};

template <class Measure>
class state_search {
 public:
  using value = typename Measure::value;

  state_search(const op_graph& graph, const masked_graph& masks, const Measure& measure,
               value below)
      : graph_(graph), masks_(masks), measure_(measure), below_(below) {}

  // Returns whether a path was found. ended() tells whether the search was complete.
  bool run() {
    reach(1, 0, -1);
    while (!open_.empty()) {
      const waiting now = open_.top();
      open_.pop();
      const node from = nodes_[now.which];
      if (from.spent < now.spent) continue;  // outdated: reached again at a lower cost
      const int next = highest(from.at);
      const outputs there = from.at ^ bit(next);
      if (next == masks_.count && (masks_.kept & ~there) == 0) {
        last_ = now.which;
        return true;
      }
      expand(now.which, from, next, there);
      if (nodes_.size() > most_states) return false;
    }
    ended_ = true;
    return false;
  }

  bool ended() const { return ended_; }
  value spent() const { return nodes_[last_].spent; }

  // The operations that the found path computes, in order.
  std::vector<std::int32_t> computed() const {
    std::vector<std::int32_t> ops;
    for (std::int32_t n = last_; nodes_[n].from >= 0; n = nodes_[n].from) {
      const state now = nodes_[n].at, before = nodes_[nodes_[n].from].at;
      const int next = highest(now), next_before = highest(before);
      const outputs came = (now ^ bit(next)) & ~(before ^ bit(next_before));
      if (came != 0) ops.push_back(lowest(came));
    }
    std::reverse(ops.begin(), ops.end());
    return ops;
  }

 private:
  struct node {
    state at;
    value spent;
    std::int32_t from;
  };
  struct waiting {
    value bound, spent;
    std::int32_t which;
    // The lowest bound first. On a tie, the state added last, which is usually the farthest.
    bool operator<(const waiting& other) const {
      return bound != other.bound ? bound > other.bound : which < other.which;
    }
  };

  void expand(std::int32_t which, const node& from, int next, outputs there) {
    std::int64_t live = 0;
    for (outputs rest = there; rest != 0; rest &= rest - 1) {
      const int op = lowest(rest);
      live += graph_.bytes[op];
      reach(from.at ^ bit(op), from.spent, which);
    }
    const outputs ran = bit(next) - 1;
    const int end = std::min(next + 1, masks_.count);
    for (int op = 0; op < end; ++op) {
      if ((there & bit(op)) != 0 || (masks_.inputs[op] & ~there) != 0) continue;
      if (!measure_.may_run(op, live)) continue;
      const bool is_first = op == next;
      const state to = (is_first ? bit(next + 1) : bit(next)) | (there & ran) | bit(op);
      reach(to, measure_.after(from.spent, op, is_first, live), which);
    }
  }

  void reach(state to, value spent, std::int32_t from) {
    const int next = highest(to);
    const value bound = measure_.at_least(spent, next, to ^ bit(next));
    if (!(bound < below_)) return;
    if (2 * nodes_.size() >= table_.size()) grow();
    std::int32_t& index = table_[position_of(to)];
    if (index < 0) {
      index = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({to, spent, from});
    } else if (spent < nodes_[index].spent) {
      nodes_[index] = {to, spent, from};
    } else {
      return;
    }
    open_.push({bound, spent, index});
  }

  std::size_t position_of(state wanted) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t at = (wanted * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (table_[at] >= 0 && nodes_[table_[at]].at != wanted) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    table_.assign(std::max<std::size_t>(1024, 4 * table_.size()), -1);
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      table_[position_of(nodes_[n].at)] = static_cast<std::int32_t>(n);
  }

  const op_graph& graph_;
  const masked_graph& masks_;
  const Measure measure_;
  const value below_;
  std::vector<node> nodes_;
  std::vector<std::int32_t> table_;  // a hash table of nodes; -1 = empty
  std::priority_queue<waiting> open_;
  std::int32_t last_ = -1;
  bool ended_ = false;
};

// Frees each output right after its last use before it is computed again. An output without further
// uses is freed at once.
std::vector<op_step> with_frees(const op_graph& graph, const std::vector<std::int32_t>& computed) {
  const std::size_t count = computed.size();
  std::vector<std::size_t> last_use(count), run_of(graph.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    last_use[i] = i;
    for (const std::int32_t from : graph.inputs[computed[i]]) last_use[run_of[from]] = i;
    run_of[computed[i]] = i;
  }
  for (std::int32_t op = 0; op < graph.size(); ++op)
    if (graph.keep[op] != 0) last_use[run_of[op]] = count;
  std::vector<op_step> steps;
  for (std::size_t i = 0; i < count; ++i) {
    steps.push_back({computed[i], true});
    run_of[computed[i]] = i;
    const auto free_if_last = [&](std::int32_t op, std::size_t run) {
      if (last_use[run] == i) steps.push_back({op, false});
    };
    for (const std::int32_t from : graph.inputs[computed[i]]) free_if_last(from, run_of[from]);
    free_if_last(computed[i], i);
  }
  return steps;
}

}  // namespace

exact_schedule least_seconds(const op_graph& graph, std::int64_t budget, double below) {
  const masked_graph masks(graph);
  const double once = seconds_once(graph);
  state_search<by_seconds> search(graph, masks, by_seconds(graph, masks, budget), below - once);
  exact_schedule found;
  if (search.run()) found.steps = with_frees(graph, search.computed());
  found.proven = search.ended() || !found.steps.empty();
  return found;
}

std::int64_t least_bytes_exactly(const op_graph& graph) {
  const masked_graph masks(graph);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  state_search<by_bytes> search(graph, masks, by_bytes(graph, masks), most);
  return search.run() ? search.spent() : most;
}

}  // namespace velo::memory
