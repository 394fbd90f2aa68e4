// Graphs of training steps for the tests of plans for recompute, what plays their steps, and DTR as
// its paper states it: all apart from the library's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/random.hpp"

namespace velo::testing {

struct graph_op {
  double seconds = 1;
  std::int64_t bytes = 1;
  std::vector<std::int64_t> inputs;
  bool keep = false;
  std::int64_t workspace = 0;
};
using graph = std::vector<graph_op>;

// A step of training: forward operations, then a gradient for each, which takes what the forward
// one took and made and the gradients of those that took it. branches: also earlier outputs are
// taken.
inline graph training_step(int forward, bool branches, unsigned seed) {
  random_source32 random(seed);
  graph g;
  for (int i = 0; i < forward; ++i) {
    graph_op op;
    op.seconds = 1 + static_cast<double>(random.below(9));
    op.bytes = 20 + static_cast<std::int64_t>(random.below(100));
    std::set<std::int64_t> inputs;
    if (i > 0) inputs.insert(i - 1);
    if (branches && i > 1 && random.one_in(3)) inputs.insert(random() % static_cast<unsigned>(i));
    op.inputs.assign(inputs.begin(), inputs.end());
    g.push_back(op);
  }
  std::vector<std::vector<std::int64_t>> parts(static_cast<std::size_t>(forward));
  for (int i = forward; i-- > 0;) {
    graph_op op{2 * g[i].seconds, i > 0 ? g[i].bytes : 10, g[i].inputs, i == 0};
    op.inputs.push_back(i);
    op.inputs.insert(op.inputs.end(), parts[i].begin(), parts[i].end());
    for (const std::int64_t from : g[i].inputs)
      parts[from].push_back(static_cast<std::int64_t>(g.size()));
    g.push_back(op);
  }
  return g;
}

struct played {
  std::string fault;  // empty: the steps are right
  double seconds = 0;
  std::int64_t peak = 0;
};

// Plays steps, +op computes and ~op frees: every operation runs after its inputs and first in
// order, nothing is computed while it is there or freed while it is not, and what is to be kept is
// there.
inline played play(const graph& g, const std::vector<std::int64_t>& steps) {
  played p;
  std::vector<bool> there(g.size(), false), ran(g.size(), false);
  std::int64_t live = 0, next = 0;
  for (const std::int64_t s : steps) {
    const std::int64_t op = s < 0 ? ~s : s;
    if (op >= static_cast<std::int64_t>(g.size())) return p.fault = "no such operation", p;
    if (s < 0) {
      if (!there[op]) return p.fault = "freed while not there", p;
      there[op] = false;
      live -= g[op].bytes;
      continue;
    }
    if (there[op]) return p.fault = "computed while there", p;
    for (const std::int64_t from : g[op].inputs)
      if (!there[from]) return p.fault = "computed without an input", p;
    if (!ran[op] && op != next++) return p.fault = "first runs out of order", p;
    ran[op] = there[op] = true;
    live += g[op].bytes;
    p.seconds += g[op].seconds;
    p.peak = std::max(p.peak, live + g[op].workspace);
  }
  if (next != static_cast<std::int64_t>(g.size())) return p.fault = "not everything ran", p;
  for (std::size_t i = 0; i < g.size(); ++i)
    if (g[i].keep && !there[i]) return p.fault = "not kept", p;
  return p;
}

inline double once(const graph& g) {
  double sum = 0;
  for (const graph_op& op : g) sum += op.seconds;
  return sum;
}

// The steps of running everything once.
inline std::vector<std::int64_t> plain(const graph& g) {
  std::vector<std::size_t> last(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    last[i] = i;
    for (const std::int64_t from : g[i].inputs) last[from] = i;
  }
  std::vector<std::int64_t> steps;
  for (std::size_t i = 0; i < g.size(); ++i) {
    steps.push_back(static_cast<std::int64_t>(i));
    for (std::size_t j = 0; j <= i; ++j)
      if (last[j] == i && !g[j].keep) steps.push_back(~static_cast<std::int64_t>(j));
  }
  return steps;
}

// Dynamic tensor rematerialization (ICLR'21): where room is needed, the output goes of least
// (its own seconds + those of the evicted operations next to it, before and after) / (bytes * time
// since its last use). Outputs that nothing to come takes go at once. Infinite seconds: it fails.
class dtr {
 public:
  dtr(const graph& g, std::int64_t budget)
      : g_(g),
        budget_(budget),
        there_(g.size()),
        ran_(g.size()),
        used_(g.size()),
        takers_(g.size()),
        pins_(g.size()) {
    for (std::size_t i = 0; i < g.size(); ++i)
      for (const std::int64_t from : g[i].inputs) takers_[from].push_back(static_cast<int>(i));
  }
  double seconds() {
    for (std::size_t i = 0; i < g_.size(); ++i) {
      now_ = static_cast<int>(i);
      if (!make(now_)) return std::numeric_limits<double>::infinity();
      for (int j = 0; j <= now_; ++j) free_if_done(j);
    }
    return spent_;
  }

 private:
  bool make(int op) {
    if (runs_++ > 64 * static_cast<int>(g_.size())) return false;
    for (const std::int64_t from : g_[op].inputs) ++pins_[from];
    for (const std::int64_t from : g_[op].inputs)
      if (!there_[from] && !make(static_cast<int>(from))) return false;
    for (const std::int64_t from : g_[op].inputs) used_[from] = spent_;
    while (live_ + g_[op].bytes + g_[op].workspace > budget_)
      if (!evict()) return false;
    for (const std::int64_t from : g_[op].inputs) --pins_[from];
    spent_ += g_[op].seconds;
    used_[op] = spent_;
    there_[op] = ran_[op] = true;
    live_ += g_[op].bytes;
    if (op != now_)
      for (const std::int64_t from : g_[op].inputs) free_if_done(static_cast<int>(from));
    return true;
  }
  void free_if_done(int op) {
    if (!there_[op] || g_[op].keep || pins_[op] > 0) return;
    for (const int t : takers_[op])
      if (!ran_[t]) return;
    there_[op] = false;
    live_ -= g_[op].bytes;
  }
  double evicted(int op, bool before, std::set<int>& seen) const {
    double sum = 0;
    const auto visit = [&](int next) {
      if (there_[next] || !ran_[next] || !seen.insert(next).second) return;
      sum += g_[next].seconds + evicted(next, before, seen);
    };
    if (before)
      for (const std::int64_t from : g_[op].inputs) visit(static_cast<int>(from));
    else
      for (const int t : takers_[op]) visit(t);
    return sum;
  }
  bool evict() {
    int worst = -1;
    double least = std::numeric_limits<double>::infinity();
    for (int op = 0; op < static_cast<int>(g_.size()); ++op) {
      if (!there_[op] || pins_[op] > 0) continue;
      std::set<int> up, down;
      const double cost = g_[op].seconds + evicted(op, true, up) + evicted(op, false, down);
      const double score =
          cost / (static_cast<double>(g_[op].bytes) * std::max(spent_ - used_[op], 1e-30));
      if (score < least) least = score, worst = op;
    }
    if (worst < 0) return false;
    there_[worst] = false;
    live_ -= g_[worst].bytes;
    return true;
  }

  const graph& g_;
  const std::int64_t budget_;
  std::vector<bool> there_, ran_;
  std::vector<double> used_;
  std::vector<std::vector<int>> takers_;
  std::vector<int> pins_;
  std::int64_t live_ = 0;
  double spent_ = 0;
  int now_ = 0;
  int runs_ = 0;
};

}  // namespace velo::testing
