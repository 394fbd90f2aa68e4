// The exact choice: the relaxed solution, then partial choices over the classes closest to its
// rate.
#include "memory/recompute/knapsack.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "memory/recompute/exact_sum.hpp"

namespace velo::memory {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// Limits on the examined partial choices, about 5 ms. Sorting one counts as several.
constexpr std::size_t quick_work = std::size_t{1} << 16, most_work = std::size_t{3} << 18;
constexpr std::size_t sorting = 4;
constexpr int many_alike = 4;
constexpr double last_bits = 1e-13;
constexpr double close_enough = 1e-6;  // less than the precision of any measurement of a layer
constexpr int many_free = 64;          // options, enough for their sums to be dense

// A step down the lower hull of a class: fewer bytes for more seconds, at `rate` seconds a byte.
struct hull_step {
  double rate;
  std::int32_t which;
  std::int32_t option;
};

double rate_between(const knapsack_option& small, const knapsack_option& large) {
  return (small.seconds - large.seconds) / static_cast<double>(large.bytes - small.bytes);
}

// Appends the steps of one class from its largest option down, with ascending rates.
void add_steps(const knapsack_class& options, std::int32_t which, std::vector<hull_step>& steps) {
  const std::size_t first = steps.size();
  const auto rate = [&](std::int32_t small, std::int32_t large) {
    return rate_between(options[small], options[large]);
  };
  std::int32_t corner = static_cast<std::int32_t>(options.size()) - 1;
  std::vector<std::int32_t> corners = {corner};
  for (std::int32_t next = corner - 1; next >= 0; --next) {
    while (corners.size() > 1 &&
           rate(next, corners.back()) <= rate(corners.back(), corners[corners.size() - 2]))
      corners.pop_back();
    corners.push_back(next);
  }
  for (std::size_t i = 1; i < corners.size(); ++i)
    steps.push_back({rate(corners[i], corners[i - 1]), which, corners[i]});
  for (std::size_t i = first + 1; i < steps.size(); ++i)  // rounding must not reverse the order
    steps[i].rate = std::max(steps[i].rate, steps[i - 1].rate);
}

// A partial choice: its bytes and seconds, and the last change from the start that led to it.
struct partial {
  std::int64_t bytes;
  double seconds;
  std::int32_t change;
};

struct change {
  std::int32_t before;
  std::int32_t which;
  std::int32_t option;
};

// A class seen from its option in the start. down: seconds a byte that the best smaller option
// costs; up: those that the best larger one saves; least: the least reduced cost of any other
// option.
struct around {
  double down = infinite;
  double up = 0;
  double least = infinite;
  std::int32_t which = 0;
};

// The step at which the relaxed solution breaks off, and the classes that can take this step down
// from their option in the start, or have taken it.
struct swap {
  std::int64_t bytes = 0;
  double seconds = 0;
  std::vector<std::int32_t> down, up;  // by class: the option after the step; -1: none
  int classes = 0;
};

class search {
 public:
  search(const std::vector<knapsack_class>& classes, std::int64_t budget)
      : classes_(classes), budget_(budget) {}

  knapsack_choice run() {
    relax();
    const knapsack_choice start = best_;
    knapsack_choice found = start;
    const auto better = [&](const knapsack_choice& other) {
      if (other.seconds < found.seconds) found = other;
      found.bound = std::min(std::max(found.bound, other.bound), found.seconds);
      return found.bound >= found.seconds;
    };
    if (better(start) || better(refined(start, infinite, quick_work)) || better(hit(start)))
      return found;
    if (found.seconds - found.bound > close_enough * found.seconds)
      better(refined(start, found.seconds, most_work));
    return found;
  }

 private:
  // Searches from `start` for a choice that takes less than `below` seconds, within `most` steps.
  // Returns `start` if there is none.
  knapsack_choice refined(const knapsack_choice& start, double below, std::size_t most) {
    best_ = start;
    best_.seconds = std::min(start.seconds, below);
    changes_.clear();
    runs_.clear();
    last_ = -1;
    const swap among = swaps();
    if (among.classes < many_alike || !refine_alike(among, most)) refine(most);
    if (best_.seconds < below) return best_;
    best_.seconds = infinite;
    return best_;
  }

  void relax() {
    std::vector<hull_step> steps;
    best_.picked.resize(classes_.size());
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      best_.picked[k] = static_cast<std::int32_t>(classes_[k].size()) - 1;
      best_.bytes += classes_[k].back().bytes;
      best_.seconds += classes_[k].back().seconds;
      add_steps(classes_[k], static_cast<std::int32_t>(k), steps);
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const hull_step& a, const hull_step& b) { return a.rate < b.rate; });
    for (auto step = steps.begin(); best_.bytes > budget_; ++step) {
      const knapsack_option& from = classes_[step->which][best_.picked[step->which]];
      const knapsack_option& to = classes_[step->which][step->option];
      best_.bytes += to.bytes - from.bytes;
      best_.seconds += to.seconds - from.seconds;
      last_step_ = {from.bytes - to.bytes, to.seconds - from.seconds, {}, {}, 0};
      best_.picked[step->which] = step->option;
      rate_ = step->rate;
    }
    // Sums of bytes differ only by multiples of the greatest common divisor of all differences.
    for (const knapsack_class& options : classes_)
      for (const knapsack_option& o : options)
        common_ = std::gcd(common_, o.bytes - options.front().bytes);
    if (common_ != 0) budget_ -= (budget_ - best_.bytes) % common_;
    best_.bound = best_.seconds - rate_ * static_cast<double>(budget_ - best_.bytes);
    start_seconds_ = best_.seconds;
  }

  // Meets the budget to the byte with options of the least reduced cost, starting from the relaxed
  // solution. If bytes and seconds are proportional in many classes, no choice takes less.
  knapsack_choice hit(const knapsack_choice& start) {
    best_ = start;
    const std::vector<free_class> free = free_classes();
    std::vector<std::vector<std::int64_t>> bytes(free.size());
    for (std::size_t i = 0; i < free.size(); ++i) {
      const knapsack_class& options = classes_[free[i].which];
      for (const std::int32_t j : free[i].options)
        bytes[i].push_back((options[j].bytes - options[free[i].options[0]].bytes) / common_);
    }
    knapsack_choice met = best_;
    met.seconds = infinite;
    const std::vector<std::int32_t> found =
        find_exact_sum(bytes, (budget_ - best_.bytes) / common_);
    if (found.empty()) return met;
    for (std::size_t i = 0; i < found.size(); ++i)
      met.picked[free[i].which] = free[i].options[found[i]];
    met.bytes = budget_;
    met.seconds = 0;
    for (std::size_t k = 0; k < classes_.size(); ++k)
      met.seconds += classes_[k][met.picked[k]].seconds;
    if (met.bound >= met.seconds * (1 - last_bits)) met.bound = met.seconds;
    return met;
  }

  // A class, its option in the start, and then its options of small reduced cost.
  struct free_class {
    std::int32_t which;
    std::vector<std::int32_t> options;
    double mean;  // of the options' bytes, minus those of the option in the start
  };

  // Enough classes for their sums to be dense around zero. Classes that add bytes and classes that
  // free bytes alternate.
  std::vector<free_class> free_classes() const {
    std::vector<double> all;
    for (std::size_t k = 0; k < classes_.size(); ++k)
      for (std::size_t j = 0; j < classes_[k].size(); ++j) all.push_back(beyond(k, j));
    const std::size_t few = std::min<std::size_t>(all.size() - 1, classes_.size() + many_free);
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(few), all.end());
    const double most = std::max(all[few], best_.seconds * last_bits / many_free);
    std::vector<free_class> sides[2];
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      free_class f{static_cast<std::int32_t>(k), {best_.picked[k]}, 0};
      for (std::size_t j = 0; j < classes_[k].size(); ++j) {
        if (static_cast<std::int32_t>(j) == best_.picked[k] || beyond(k, j) > most) continue;
        f.options.push_back(static_cast<std::int32_t>(j));
        f.mean += static_cast<double>(classes_[k][j].bytes - classes_[k][best_.picked[k]].bytes);
      }
      f.mean /= static_cast<double>(f.options.size());
      if (f.options.size() > 1) sides[f.mean < 0 ? 1 : 0].push_back(std::move(f));
    }
    std::vector<free_class> taken;
    double mean = 0;
    std::size_t next[2] = {0, 0};
    while (next[mean > 0 ? 1 : 0] < sides[mean > 0 ? 1 : 0].size()) {
      const int side = mean > 0 ? 1 : 0;
      taken.push_back(std::move(sides[side][next[side]++]));
      mean += taken.back().mean;
    }
    return taken;
  }

  // The reduced cost of an option: its additional seconds minus the relaxed rate for the bytes it
  // frees.
  double beyond(std::size_t which, std::size_t option) const {
    const knapsack_option& here = classes_[which][best_.picked[which]];
    const knapsack_option& other = classes_[which][option];
    return other.seconds - here.seconds + rate_ * static_cast<double>(other.bytes - here.bytes);
  }

  // A choice counts as better only below this, since sums of seconds differ in their last bits.
  double wanted() const { return best_.seconds * (1 - last_bits); }

  double bound_of(std::int64_t bytes, double seconds, double down, double up) const {
    if (bytes > budget_) return seconds + static_cast<double>(bytes - budget_) * down;
    return seconds - static_cast<double>(budget_ - bytes) * up;
  }

  void refine(std::size_t most) {
    const std::vector<around> order = sorted([&](const around& a, const around& b) {
      return std::min(a.down - rate_, rate_ - a.up) < std::min(b.down - rate_, rate_ - b.up);
    });
    const std::size_t count = order.size();
    std::vector<double> down(count + 1, infinite), up(count + 1, 0);  // of the remaining classes
    for (std::size_t i = count; i-- > 0;) {
      down[i] = std::min(down[i + 1], order[i].down);
      up[i] = std::max(up[i + 1], order[i].up);
    }
    const std::vector<std::int32_t> start = best_.picked;
    const double relaxed = best_.bound;
    std::vector<partial> kept = {{best_.bytes, start_seconds_, -1}}, grown;
    std::size_t work = 0;
    for (std::size_t i = 0; i < count && !kept.empty(); ++i) {
      work += kept.size() * classes_[order[i].which].size();
      if (work > most) return restore(start, relaxed);
      grown.clear();
      expand(order[i].which, start[order[i].which], relaxed, down[i + 1], up[i + 1], most - work,
             kept, grown);
      work += sorting * grown.size();
      if (work > most) return restore(start, relaxed);
      drop_beaten(grown, [&](const partial& p) {
        return bound_of(p.bytes, p.seconds, down[i + 1], up[i + 1]) < wanted();
      });
      kept.swap(grown);
    }
    restore(start, best_.seconds);
  }

  // Finds the classes that can take the last step of the relaxed solution, or take it back. If
  // layers are alike, nearly all classes can.
  swap swaps() const {
    swap s = last_step_;
    s.down.assign(classes_.size(), -1);
    s.up = s.down;
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      const knapsack_option& here = classes_[k][best_.picked[k]];
      for (std::size_t j = 0; j < classes_[k].size(); ++j) {
        const knapsack_option& other = classes_[k][j];
        if (here.bytes - other.bytes == s.bytes && other.seconds - here.seconds == s.seconds)
          s.down[k] = static_cast<std::int32_t>(j);
        if (other.bytes - here.bytes == s.bytes && here.seconds - other.seconds == s.seconds)
          s.up[k] = static_cast<std::int32_t>(j);
      }
      if (s.down[k] >= 0 || s.up[k] >= 0) ++s.classes;
    }
    return s;
  }

  // As refine(), for many classes with the same step. It does not matter which of them take the
  // step, so partial choices that differ only by such steps are merged and hold the number of steps
  // that brings them nearest below the budget. At the end the steps are assigned to classes; if too
  // few classes are left, the call returns false and has changed nothing.
  bool refine_alike(const swap& s, std::size_t most) {
    const std::vector<around> order =
        sorted([](const around& a, const around& b) { return a.least < b.least; }, &s);
    const knapsack_choice start = best_;
    std::vector<partial> kept = {{best_.bytes, start_seconds_, -1}}, grown;
    std::size_t work = 0;
    bool complete = true;
    for (std::size_t i = 0; i < order.size() && !kept.empty(); ++i) {
      const std::int32_t k = order[i].which, here = start.picked[k];
      const double to_come = i + 1 < order.size() ? order[i + 1].least : infinite;
      work += kept.size() * classes_[k].size();
      complete = complete && work <= most;
      if (!complete) break;
      const auto useful = [&](const partial& p) {
        return p.seconds - rate_ * static_cast<double>(budget_ - p.bytes) + to_come < wanted();
      };
      grown.clear();
      for (std::int32_t j = 0; j < static_cast<std::int32_t>(classes_[k].size()); ++j) {
        if (j != here && (j == s.down[k] || j == s.up[k])) continue;
        const knapsack_option& from = classes_[k][here];
        const knapsack_option& to = classes_[k][j];
        const std::int64_t bytes = to.bytes - from.bytes;
        const double seconds = to.seconds - from.seconds;
        const double beyond = seconds + rate_ * static_cast<double>(bytes);
        if (j != here && start.bound + beyond >= wanted()) continue;
        for (const partial& p : kept) {
          partial next = nearest({p.bytes + bytes, p.seconds + seconds, p.change}, s);
          const bool better = next.seconds < wanted();
          if (!better && !useful(next)) continue;
          if (j != here) {
            changes_.push_back({p.change, k, j});
            next.change = static_cast<std::int32_t>(changes_.size()) - 1;
          }
          grown.push_back(next);
          if (better) {
            best_.seconds = next.seconds;
            best_.bytes = next.bytes;
            last_ = next.change;
          }
        }
      }
      work += sorting * grown.size();
      drop_beaten(grown, useful);
      kept.swap(grown);
    }
    restore(start.picked, complete ? best_.seconds : start.bound);
    if (take_steps(s)) return true;
    best_ = start;
    changes_.clear();
    last_ = -1;
    return false;
  }

  partial nearest(partial p, const swap& s) const {
    std::int64_t steps = (p.bytes - budget_) / s.bytes;  // toward zero
    if (p.bytes > budget_ && (p.bytes - budget_) % s.bytes != 0) ++steps;
    p.bytes -= steps * s.bytes;
    p.seconds += static_cast<double>(steps) * s.seconds;
    return p;
  }

  // Assigns the steps of the best choice to classes that still have their first option.
  bool take_steps(const swap& s) {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < classes_.size(); ++k) bytes += classes_[k][best_.picked[k]].bytes;
    for (std::size_t k = 0; k < classes_.size() && bytes != best_.bytes; ++k) {
      const std::int32_t other = bytes > best_.bytes ? s.down[k] : s.up[k];
      if (other < 0 || is_changed(static_cast<std::int32_t>(k))) continue;
      bytes += classes_[k][other].bytes - classes_[k][best_.picked[k]].bytes;
      best_.picked[k] = other;
    }
    return bytes == best_.bytes;
  }

  bool is_changed(std::int32_t which) const {
    for (std::int32_t c = last_; c >= 0; c = changes_[c].before)
      if (changes_[c].which == which) return true;
    return false;
  }

  template <class Before>
  std::vector<around> sorted(Before&& before, const swap* but = nullptr) const {
    std::vector<around> order(classes_.size());
    for (std::size_t k = 0; k < classes_.size(); ++k) {
      around& a = order[k];
      a.which = static_cast<std::int32_t>(k);
      const std::int32_t here = best_.picked[k];
      const knapsack_class& options = classes_[k];
      for (std::int32_t j = 0; j < static_cast<std::int32_t>(options.size()); ++j) {
        if (j == here || (but != nullptr && (j == but->down[k] || j == but->up[k]))) continue;
        if (j < here) a.down = std::min(a.down, rate_between(options[j], options[here]));
        if (j > here) a.up = std::max(a.up, rate_between(options[here], options[j]));
        a.least = std::min(a.least,
                           options[j].seconds - options[here].seconds +
                               rate_ * static_cast<double>(options[j].bytes - options[here].bytes));
      }
    }
    std::stable_sort(order.begin(), order.end(), before);
    return order;
  }

  void expand(std::int32_t which, std::int32_t here, double relaxed, double down, double up,
              std::size_t most, const std::vector<partial>& kept, std::vector<partial>& grown) {
    const knapsack_class& options = classes_[which];
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(options.size()); ++j) {
      if (sorting * grown.size() > most) return;
      const std::int64_t bytes = options[j].bytes - options[here].bytes;
      const double seconds = options[j].seconds - options[here].seconds;
      // The relaxed solution plus the option's reduced cost is a lower bound.
      if (j != here && relaxed + seconds + rate_ * static_cast<double>(bytes) >= wanted()) continue;
      for (const partial& p : kept) {
        const partial next{p.bytes + bytes, p.seconds + seconds, p.change};
        if (bound_of(next.bytes, next.seconds, down, up) >= wanted()) continue;
        grown.push_back(next);
        if (j != here) {
          grown.back().change = static_cast<std::int32_t>(changes_.size());
          changes_.push_back({p.change, which, j});
        }
        if (next.bytes <= budget_ && next.seconds < wanted()) {
          best_.seconds = next.seconds;
          best_.bytes = next.bytes;
          last_ = grown.back().change;
        }
      }
      if (grown.size() > (runs_.empty() ? 0 : runs_.back())) runs_.push_back(grown.size());
    }
  }

  // Drops every dominated entry. The entries are runs sorted by bytes, or unordered.
  template <class Useful>
  void drop_beaten(std::vector<partial>& all, Useful&& useful) {
    const auto before = [](const partial& a, const partial& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
    };
    if (runs_.empty()) std::sort(all.begin(), all.end(), before);
    while (runs_.size() > 1) {  // merges pairs of runs
      merged_.resize(all.size());
      std::size_t begin = 0, count = 0;
      for (std::size_t r = 0; r < runs_.size(); r += 2) {
        const std::size_t middle = runs_[r], end = runs_[std::min(r + 1, runs_.size() - 1)];
        std::merge(all.begin() + begin, all.begin() + middle, all.begin() + middle,
                   all.begin() + end, merged_.begin() + begin, before);
        begin = runs_[count++] = end;
      }
      runs_.resize(count);
      all.swap(merged_);
    }
    runs_.clear();
    double least = infinite;
    std::size_t kept = 0;
    for (const partial& p : all) {
      if (p.seconds >= least || !useful(p)) continue;
      least = p.seconds;
      all[kept++] = p;
    }
    all.resize(kept);
  }

  // Sets the options of the best choice from its list of changes.
  void restore(const std::vector<std::int32_t>& start, double bound) {
    best_.picked = start;
    best_.bound = std::min(bound, best_.seconds);
    for (std::int32_t c = last_; c >= 0; c = changes_[c].before)
      best_.picked[changes_[c].which] = changes_[c].option;
  }

  const std::vector<knapsack_class>& classes_;
  std::int64_t budget_;
  double rate_ = 0;
  double start_seconds_ = 0;
  std::int64_t common_ = 0;  // divides all differences of bytes within a class
  swap last_step_;
  knapsack_choice best_;
  std::int32_t last_ = -1;
  std::vector<change> changes_;
  std::vector<std::size_t> runs_;  // ends of the runs of the grown choices
  std::vector<partial> merged_;
};

}  // namespace

std::int64_t least_bytes(const std::vector<knapsack_class>& classes) {
  std::int64_t sum = 0;
  for (const knapsack_class& options : classes) sum += options.front().bytes;
  return sum;
}

knapsack_choice choose(const std::vector<knapsack_class>& classes, std::int64_t budget) {
  return search(classes, budget).run();
}

}  // namespace velo::memory
