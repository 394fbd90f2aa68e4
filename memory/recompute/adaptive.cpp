// Modules become classes of options; the budget is bisected between what fits and what does not.
#include "memory/recompute/adaptive.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/failure.hpp"
#include "memory/recompute/graph.hpp"
#include "memory/recompute/knapsack.hpp"
#include "memory/recompute/layers.hpp"

namespace velo::memory {
namespace {

using core::fail;
using core::text;

constexpr std::size_t most_pairs = std::size_t{1} << 18;
constexpr std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(std::int64_t module, const char* field, const char* expected,
                         const char* got) {
  fail(VELO_ERR_ARGUMENT, core::concat("modules[", module, "].", field), expected, got);
}

void check_module(const velo_recompute_module* modules, std::int64_t i,
                  const std::vector<velo_recompute_layer>& layers) {
  const velo_recompute_module& m = modules[i];
  if (m.layer < 0 || m.layer >= static_cast<std::int32_t>(layers.size()))
    refuse(i, "layer", text("the index of one of the stage's %zu layers", layers.size()),
           text("%d", m.layer));
  if (m.parent < -1 || m.parent >= i || (m.parent >= 0 && modules[m.parent].layer != m.layer))
    refuse(i, "parent", "-1, or the index of a module of the same layer before this one",
           text("%d", m.parent));
  if (!(m.seconds >= 0 && m.seconds <= most_seconds))
    refuse(i, "seconds", text("0 to %g", most_seconds), text("%g", m.seconds));
  for (const bool input : {false, true}) {
    const std::uint64_t bytes = input ? m.bytes_input : m.bytes;
    if (bytes > static_cast<std::uint64_t>(most_bytes))
      refuse(i, input ? "bytes_input" : "bytes", "less than 2^63", core::number(bytes));
  }
}

// The bytes of each module that belong to none of its submodules. The sum over all roots, times the
// number of micro-batches in flight, fits 63 bits.
std::vector<std::int64_t> own_bytes(const velo_recompute_module* modules, std::int64_t count,
                                    const std::vector<velo_recompute_layer>& layers) {
  std::vector<std::int64_t> own(count);
  std::int64_t left = most_bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    check_module(modules, i, layers);
    const velo_recompute_module& m = modules[i];
    own[i] = static_cast<std::int64_t>(m.bytes);
    if (m.parent >= 0) {
      own[m.parent] -= own[i];
      if (own[m.parent] < 0)
        refuse(i, "bytes",
               core::concat("at most what module ", m.parent, " has left of its ",
                            modules[m.parent].bytes, " bytes"),
               core::number(m.bytes));
    }
    const std::int64_t times = layers[m.layer].in_flight;
    const std::uint64_t larger = std::max(m.bytes, m.bytes_input);
    const std::uint64_t room = static_cast<std::uint64_t>(left / std::max<std::int64_t>(times, 1));
    if (larger > room)
      refuse(i, m.bytes >= m.bytes_input ? "bytes" : "bytes_input",
             "sizes whose sum over micro-batches in flight is less than 2^63",
             core::concat(larger, ", ", times, " in flight"));
    left -= static_cast<std::int64_t>(larger) * times;
  }
  return own;
}

// A useful combination for a tree: its root is recomputed as a whole, or two combinations of its
// parts are joined.
struct combination {
  std::int64_t bytes;
  double seconds;
  std::int32_t how;  // index of `origins`; -1: nothing is recomputed
};

struct origin {
  std::int32_t module;  // the recomputed module; -1: `left` and `right` are joined
  std::int32_t left;
  std::int32_t right;
};

class forest {
 public:
  forest(const velo_recompute_module* modules, std::int64_t count,
         const std::vector<velo_recompute_layer>& layers) {
    const std::vector<std::int64_t> own = own_bytes(modules, count, layers);
    std::vector<std::vector<combination>> fates(count);
    for (std::int64_t i = 0; i < count; ++i) fates[i] = {{own[i], 0, -1}};
    for (std::int64_t i = count; i-- > 0;) {  // parts come after the modules that contain them
      const velo_recompute_module& m = modules[i];
      origins_.push_back({static_cast<std::int32_t>(i), -1, -1});
      fates[i].push_back({static_cast<std::int64_t>(m.bytes_input), m.seconds, last_origin()});
      keep_useful(fates[i]);
      if (m.parent >= 0) {
        fates[m.parent] = join(fates[m.parent], fates[i], i);
      } else {
        most_ += static_cast<std::int64_t>(m.bytes) * layers[m.layer].in_flight;
        add_class(fates[i], layers[m.layer].in_flight);
      }
      fates[i] = {};
    }
  }

  const std::vector<knapsack_class>& classes() const { return classes_; }
  std::int64_t most() const { return most_; }  // bytes with nothing recomputed

  std::vector<std::int32_t> recomputed(const std::vector<std::int32_t>& picked,
                                       std::int64_t count) const {
    std::vector<std::int32_t> all(count, 0);
    std::vector<std::int32_t> open;
    for (std::size_t k = 0; k < picked.size(); ++k) open.push_back(hows_[k][picked[k]]);
    while (!open.empty()) {
      const std::int32_t how = open.back();
      open.pop_back();
      if (how < 0) continue;
      if (origins_[how].module >= 0) {
        all[origins_[how].module] = 1;
      } else {
        open.push_back(origins_[how].left);
        open.push_back(origins_[how].right);
      }
    }
    return all;
  }

 private:
  std::int32_t last_origin() const { return static_cast<std::int32_t>(origins_.size()) - 1; }

  static void keep_useful(std::vector<combination>& all) {
    std::sort(all.begin(), all.end(), [](const combination& a, const combination& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
    });
    double least = std::numeric_limits<double>::infinity();
    std::size_t kept = 0;
    for (const combination& c : all) {
      if (c.seconds >= least) continue;
      least = c.seconds;
      all[kept++] = c;
    }
    all.resize(kept);
  }

  std::vector<combination> join(const std::vector<combination>& a,
                                const std::vector<combination>& b, std::int64_t part) {
    if (a.size() * b.size() > most_pairs)
      refuse(part, "parent", text("a module whose parts combine in at most %zu ways", most_pairs),
             text("%zu times %zu useful ones", a.size(), b.size()));
    std::vector<combination> all;
    all.reserve(a.size() * b.size());
    for (const combination& x : a)
      for (const combination& y : b)
        all.push_back({x.bytes + y.bytes, x.seconds + y.seconds,
                       static_cast<std::int32_t>(all.size())});  // which pair, for the moment
    keep_useful(all);
    const auto width = static_cast<std::int32_t>(b.size());
    for (combination& c : all) {
      const std::int32_t left = a[c.how / width].how, right = b[c.how % width].how;
      c.how = std::max(left, right);
      if (left < 0 || right < 0) continue;
      origins_.push_back({-1, left, right});
      c.how = last_origin();
    }
    return all;
  }

  void add_class(const std::vector<combination>& fates, std::int64_t times) {
    knapsack_class options;
    std::vector<std::int32_t> hows;
    for (const combination& c : fates) {
      options.push_back({c.bytes * times, c.seconds});
      hows.push_back(c.how);
    }
    classes_.push_back(std::move(options));
    hows_.push_back(std::move(hows));
  }

  std::int64_t most_ = 0;
  std::vector<origin> origins_;
  std::vector<knapsack_class> classes_;
  std::vector<std::vector<std::int32_t>> hows_;  // by class and option
};

// Bisects between the largest budget that fits and the smallest that fails, and chooses the next
// trial.
class bisection {
 public:
  bisection(const forest& from, const velo_recompute_budget& budget)
      : from_(from), budget_(budget), least_(least_bytes(from.classes())) {}

  void run() {
    std::int64_t high = static_cast<std::int64_t>(budget_.bytes);
    if (high < least_) refuse_budget("bytes", budget_.bytes);
    if (budget_.fails != 0) {
      // A budget that fails rules out every budget that gives the same choice.
      const auto failed = static_cast<std::int64_t>(budget_.fails);
      if (failed <= least_) refuse_budget("fails", budget_.fails);
      high = std::min(high, std::min(failed, at(failed).bytes) - 1);
      if (high < least_) refuse_budget("fails", budget_.fails);
    }
    const auto step = static_cast<std::int64_t>(budget_.step);
    std::int64_t low = static_cast<std::int64_t>(budget_.fits);
    const bool fits = low != 0;
    low = std::max(low, least_);
    if (!fits && budget_.fails == 0) return take(high, false);
    const knapsack_choice known = at(low);
    while (at(high).bytes > low && high - low > step) {
      const std::int64_t middle = low + (high - low) / 2;
      if (at(middle).bytes > low) return take(middle, false);
      low = middle;  // all budgets up to this one give the known choice
    }
    take(low, fits);
  }

  std::int64_t budget = 0;
  knapsack_choice choice;
  bool settled = false;

 private:
  knapsack_choice at(std::int64_t bytes) const { return choose(from_.classes(), bytes); }

  // A budget is never 0, which is no budget where the caller gives it back.
  void take(std::int64_t bytes, bool is_last) {
    budget = std::max<std::int64_t>(bytes, 1);
    choice = at(budget);
    settled = is_last;
  }

  [[noreturn]] void refuse_budget(const char* field, std::uint64_t got) const {
    const bool is_budget = std::strcmp(field, "bytes") == 0;  // which may be the least itself
    fail(VELO_ERR_ARGUMENT, text("budget.%s", field),
         core::concat(is_budget ? "at least" : "more than", " the least that works: ", least_,
                      " bytes, with everything recomputed that saves any"),
         core::number(got));
  }

  const forest& from_;
  const velo_recompute_budget& budget_;
  const std::int64_t least_;
};

}  // namespace

adaptive_choice choose_modules(const velo_recompute_rule& rule, const velo_recompute_budget& budget,
                               const velo_recompute_module* modules, std::int64_t count) {
  const forest trees(modules, count, layers_of(rule));
  bisection trial(trees, budget);
  trial.run();
  adaptive_choice made;
  made.recomputed = trees.recomputed(trial.choice.picked, count);
  made.numbers.settled = trial.settled ? 1 : 0;
  made.numbers.budget = static_cast<std::uint64_t>(trial.budget);
  made.numbers.bytes = static_cast<std::uint64_t>(trial.choice.bytes);
  made.numbers.bytes_least = static_cast<std::uint64_t>(least_bytes(trees.classes()));
  made.numbers.bytes_most = static_cast<std::uint64_t>(trees.most());
  made.numbers.seconds = trial.choice.seconds;
  made.numbers.seconds_bound = trial.choice.bound;
  return made;
}

}  // namespace velo::memory
