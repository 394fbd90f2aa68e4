// The search: decisions on a stack, their changes on a trail, open subproblems on an agenda.
#include "memory/plan/solver/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "memory/plan/solver/random.hpp"

namespace velo::memory {
namespace {
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t clock_interval = 64;  // nodes between two reads of the clock
}  // namespace

plan_search::plan_search(const plan_problem& problem)
    : problem_(problem),
      weight_(problem.moment_count(), 1.0),
      chance_(problem.buffers()),
      held_by_(problem.buffers(), -1),
      lowest_at_(problem.moment_count()),
      cover_(problem.moment_count() + 1) {
  for (int m = 0; m < problem.moment_count(); ++m) lowest_at_[m] = *problem.moments[m].begin();
}

void plan_search::reset(std::int64_t ceiling, const search_strategy& strategy, std::uint64_t seed) {
  const int n = problem_.buffers(), moments = problem_.moment_count();
  ceiling_ = ceiling;
  strategy_ = strategy;
  low_.assign(n, 0);
  offset_.assign(n, -1);
  postponed_.assign(n, 0);
  floor_.assign(moments, 0);
  rest_.assign(moments, 0);
  top_.assign(moments, ceiling);
  for (int m = 0; m < moments; ++m)
    for (const std::int32_t i : problem_.moments[m]) rest_[m] += problem_.sizes[i];
  plan_random random(seed);
  for (double& c : chance_) c = 1 + strategy.noise * random.unit();
  for (double& w : weight_) w = 1 + (w - 1) / 2;  // what was learned fades
  trail_.clear();
  arena_.resize(n);
  for (int i = 0; i < n; ++i) arena_[i] = i;
  agenda_.clear();
  decisions_.clear();
}

search_result plan_search::run(std::int64_t ceiling, const search_strategy& strategy,
                               std::int64_t nodes, std::uint64_t seed,
                               const std::function<bool()>& stop) {
  reset(ceiling, strategy, seed);
  for (int m = 0; m < problem_.moment_count(); ++m)
    if (slack(m) < 0) return search_result::impossible;
  divide(-1, 0, arena_.size());
  const std::int64_t last = nodes_ + nodes;
  while (!agenda_.empty()) {
    const subproblem next = agenda_.back();
    agenda_.pop_back();
    decisions_.push_back({next, -1, trail_.size(), agenda_.size(), arena_.size()});
    for (;;) {  // until a decision, the latest or an earlier one, has a branch left
      if (++nodes_ > last) return search_result::gave_up;
      if (nodes_ % clock_interval == 0 && stop()) return search_result::gave_up;
      decision& at = decisions_.back();
      at.buffer = choose(at);
      if (place(at.buffer, at.of)) break;
      if (!go_back(static_cast<std::int32_t>(decisions_.size()) - 1))
        return search_result::impossible;
    }
    const decision& at = decisions_.back();
    const std::size_t begin = arena_.size();
    for (std::size_t x = at.of.begin; x < at.of.end; ++x) {
      const std::int32_t i = arena_[x];
      if (!placed(i)) arena_.push_back(i);
    }
    divide(static_cast<std::int32_t>(decisions_.size()) - 1, begin, arena_.size());
  }
  return search_result::found;
}

// Excludes the placement of decision `to`, which has failed with all that followed, or, if that
// leaves no branch, the placement of its subproblem's parent. Returns false if no decision is left.
bool plan_search::go_back(std::int32_t to) {
  for (; to >= 0; to = decisions_[to].of.parent) {
    decisions_.resize(to + 1);
    decision& at = decisions_[to];
    undo(at.trail);
    agenda_.resize(at.agenda);
    arena_.resize(at.arena);
    if (postpone(at.buffer, at.of)) {
      at.trail = trail_.size();  // the exclusion lasts as long as the decision
      return true;
    }
  }
  return false;
}

void plan_search::undo(std::size_t trail) {
  while (trail_.size() > trail) {
    *trail_.back().where = trail_.back().before;
    trail_.pop_back();
  }
}

// Puts arena_[begin, end) on the agenda as subproblems that do not overlap in time, the tightest on
// top. A buffer that spans a whole subproblem is placed at its top at once, since it could be
// exchanged with any buffer above it.
void plan_search::divide(std::int32_t parent, std::size_t begin, std::size_t end) {
  const std::size_t agenda = agenda_.size();
  open_.assign(1, {parent, begin, end});
  while (!open_.empty()) {
    const subproblem of = strip(open_.back());
    open_.pop_back();
    if (of.begin == of.end) continue;
    const std::size_t subproblems = open_.size();
    split(of);
    if (open_.size() == subproblems + 1) {  // it is one
      agenda_.push_back(of);
      open_.pop_back();
    }
  }
  if (agenda_.size() - agenda < 2) return;
  const auto tightness = [&](const subproblem& of) {
    double least = std::numeric_limits<double>::max();
    for (std::size_t x = of.begin; x < of.end; ++x) {
      const std::int32_t m = problem_.first[arena_[x]];
      least = std::min(least, static_cast<double>(slack(m)) / weight_[m]);
    }
    return least;
  };
  std::stable_sort(
      agenda_.begin() + agenda, agenda_.end(),
      [&](const subproblem& a, const subproblem& b) { return tightness(a) > tightness(b); });
}

// Places the buffers that span a whole subproblem at its top, and repeats while that shortens the
// subproblem.
plan_search::subproblem plan_search::strip(subproblem of) {
  for (;;) {
    std::int32_t first = problem_.moment_count(), last = -1;
    for (std::size_t x = of.begin; x < of.end; ++x) {
      first = std::min(first, problem_.first[arena_[x]]);
      last = std::max(last, problem_.last[arena_[x]]);
    }
    std::size_t kept = of.end;
    for (std::size_t x = of.begin; x < kept;) {
      const std::int32_t i = arena_[x];
      if (problem_.first[i] != first || problem_.last[i] != last) {
        ++x;
        continue;
      }
      settle(i, top_[first] - problem_.sizes[i]);
      for (std::int32_t m = first; m <= last; ++m) set(top_[m], top_[m] - problem_.sizes[i]);
      std::swap(arena_[x], arena_[--kept]);
    }
    if (kept == of.end) return of;
    of.end = kept;
    if (of.begin == of.end) return of;
  }
}

// Cuts a subproblem between neighboring moments that no buffer spans together, and adds the parts
// to open_.
void plan_search::split(const subproblem& of) {
  std::int32_t first = problem_.moment_count(), last = -1;
  for (std::size_t x = of.begin; x < of.end; ++x) {
    first = std::min(first, problem_.first[arena_[x]]);
    last = std::max(last, problem_.last[arena_[x]]);
  }
  std::fill(cover_.begin() + first, cover_.begin() + last + 1, 0);
  for (std::size_t x = of.begin; x < of.end; ++x) {
    ++cover_[problem_.first[arena_[x]]];
    --cover_[problem_.last[arena_[x]]];
  }
  std::int32_t spanning = 0, which = 0;  // cover_[m] becomes the number of m's subproblem
  for (std::int32_t m = first; m <= last; ++m) {
    spanning += cover_[m];
    cover_[m] = which;
    if (spanning == 0) ++which;
  }
  if (which > 1) {
    std::sort(arena_.begin() + of.begin, arena_.begin() + of.end,
              [&](std::int32_t a, std::int32_t b) {
                return cover_[problem_.first[a]] < cover_[problem_.first[b]];
              });
  }
  subproblem next = {of.parent, of.begin, of.begin};
  while (next.end < of.end) {
    const std::int32_t number = cover_[problem_.first[arena_[next.begin]]];
    while (next.end < of.end && cover_[problem_.first[arena_[next.end]]] == number) ++next.end;
    open_.push_back(next);
    next.begin = next.end;
  }
}

void plan_search::settle(std::int32_t buffer, std::int64_t offset) {
  set(offset_[buffer], offset);
  for (std::int32_t m = problem_.first[buffer]; m <= problem_.last[buffer]; ++m)
    set(rest_[m], rest_[m] - problem_.sizes[buffer]);
}

// Places buffer i at low(i), below all buffers that overlap it. Returns false if the rest does not
// fit at some moment.
bool plan_search::place(std::int32_t buffer, const subproblem& of) {
  const std::int64_t end = low_[buffer] + problem_.sizes[buffer];
  settle(buffer, low_[buffer]);
  std::int32_t first = problem_.first[buffer], last = problem_.last[buffer];
  for (std::int32_t m = first; m <= last; ++m) set(floor_[m], end);
  for (const std::int32_t other : problem_.overlapping[buffer]) {
    if (placed(other)) continue;
    if (postponed_[other]) set(postponed_[other], 0);  // the skyline holds it up now
    if (low_[other] >= end) continue;
    set(low_[other], end);
    first = std::min(first, problem_.first[other]);
    last = std::max(last, problem_.last[other]);
  }
  return raise_floors(first, last) && raise_postponed(of);
}

bool plan_search::postpone(std::int32_t buffer, const subproblem& of) {
  set(postponed_[buffer], 1);
  return raise_postponed(of);
}

// A postponed buffer lies on top of an unplaced one: at least at the lowest end of those that
// overlap it.
bool plan_search::raise_postponed(const subproblem& of) {
  for (bool again = true; again;) {
    std::int32_t first = problem_.moment_count(), last = -1;
    for (std::size_t x = of.begin; x < of.end; ++x) {
      const std::int32_t i = arena_[x];
      if (!postponed_[i] || placed(i)) continue;
      if (is_held_up(i, held_by_[i])) continue;
      std::int64_t least = highest;
      for (const std::int32_t other : problem_.overlapping[i]) {
        if (placed(other) || end_of(other) >= least) continue;
        least = end_of(other);
        held_by_[i] = other;
      }
      if (least == highest) return false;
      if (least <= low_[i]) continue;
      set(low_[i], least);
      first = std::min(first, problem_.first[i]);
      last = std::max(last, problem_.last[i]);
    }
    again = last >= 0;
    if (again && !raise_floors(first, last)) return false;
  }
  return true;
}

void plan_search::raise_floor(std::int32_t m) {
  std::int64_t least = highest;
  for (const std::int32_t i : problem_.moments[m]) {
    if (placed(i) || low_[i] >= least) continue;
    least = low_[i];
    lowest_at_[m] = i;
  }
  if (least > floor_[m]) set(floor_[m], least);
}

bool plan_search::raise_floors(std::int32_t first, std::int32_t last) {
  for (std::int32_t m = first; m <= last; ++m) {
    if (rest_[m] == 0) continue;
    if (placed(lowest_at_[m]) || low_[lowest_at_[m]] > floor_[m]) raise_floor(m);
    if (slack(m) < 0) {
      weight_[m] += 1;
      return false;
    }
  }
  return true;
}

// Returns the buffer to place next: the preferred one of those that lie lowest at the chosen
// moment, or another one as long as that fits below it, since a placed buffer must not cover room
// that others need.
std::int32_t plan_search::choose(const decision& at) const {
  const std::int32_t moment = choose_moment(at);
  std::int32_t best = -1;
  double most = 0;
  const auto consider = [&](std::int32_t i) {
    const double value = preference(i);
    if (best < 0 || value > most) {
      best = i;
      most = value;
    }
  };
  std::int64_t lowest = highest;  // above the floor if the buffers there were moved to the top
  for (const std::int32_t i : problem_.moments[moment])
    if (!placed(i)) lowest = std::min(lowest, low_[i]);
  for (const std::int32_t i : problem_.moments[moment])
    if (!placed(i) && low_[i] == lowest) consider(i);
  for (;;) {
    const std::int32_t upper = best;
    best = -1;
    for (const std::int32_t other : problem_.overlapping[upper])
      if (!placed(other) && low_[other] + problem_.sizes[other] <= low_[upper]) consider(other);
    if (best < 0) return upper;
  }
}

std::int32_t plan_search::choose_moment(const decision& at) const {
  std::int32_t best = -1;
  double least = 0;
  std::int32_t first = problem_.moment_count(), last = -1;
  for (std::size_t x = at.of.begin; x < at.of.end; ++x) {
    first = std::min(first, problem_.first[arena_[x]]);
    last = std::max(last, problem_.last[arena_[x]]);
  }
  for (std::int32_t m = first; m <= last; ++m) {
    if (rest_[m] == 0) continue;
    const double score = moment_score(m);
    if (best < 0 || score < least) {
      best = m;
      least = score;
    }
  }
  return best;
}

double plan_search::moment_score(std::int32_t m) const {
  const double c = static_cast<double>(ceiling_), w = weight_[m];
  const double tight = static_cast<double>(slack(m)) + c * 0.001;
  const double low = static_cast<double>(floor_[m]);
  switch (strategy_.where) {
    case search_strategy::moment::tight:
      return tight * (c - static_cast<double>(rest_[m])) / w;
    case search_strategy::moment::low_tight:
      return (low + c * 0.01) * tight / w;
    case search_strategy::moment::low:
      return (low + c * 0.01) / w;
    case search_strategy::moment::low_half_tight:
      return (low + c * 0.01) * std::sqrt(tight) / w;
    case search_strategy::moment::half_low:
      return (low + c * 0.1) * tight / w;
    case search_strategy::moment::lowest:
      break;
  }
  return low + tight * 0.01;
}

// The priority of placing buffer i now. Waste: the gap left below it, relative to the largest gap
// possible there.
double plan_search::preference(std::int32_t i) const {
  const std::int32_t duplicate = problem_.duplicate[i];
  if (duplicate >= 0 && !placed(duplicate) && low_[duplicate] <= low_[i])
    return -std::numeric_limits<double>::max();  // duplicates are placed in order
  const double c = static_cast<double>(ceiling_), size = static_cast<double>(problem_.sizes[i]);
  const double length = problem_.last[i] - problem_.first[i] + 1;
  double waste = 0, weight = 0;
  for (std::int32_t m = problem_.first[i]; m <= problem_.last[i]; ++m) {
    waste += weight_[m] * static_cast<double>(low_[i] - floor_[m]) /
             (static_cast<double>(slack(m)) + c * 0.001);
    weight += weight_[m];
  }
  if (strategy_.walls) {
    const std::int64_t bottom = low_[i], top = bottom + problem_.sizes[i];
    waste -= 0.05 * length *
             (wall_share(problem_.first[i] - 1, bottom, top) +
              wall_share(problem_.last[i] + 1, bottom, top));
  }
  switch (strategy_.what) {
    case search_strategy::buffer::least_waste:
      return size * length - waste * 1e6 * chance_[i];
    case search_strategy::buffer::longest:
      return (length * c + size) * chance_[i] - waste * c;
    case search_strategy::buffer::largest:
      return size * weight * chance_[i];
    case search_strategy::buffer::weighted_longest:
      break;
  }
  return (weight - waste) * c * chance_[i] + size;
}

// Returns how much of a buffer's side is covered by placed buffers of the neighboring moment: 1 for
// all of it.
double plan_search::wall_share(std::int32_t moment, std::int64_t bottom, std::int64_t top) const {
  if (moment < 0 || moment >= problem_.moment_count() || floor_[moment] >= top) return 1;
  if (floor_[moment] <= bottom) return 0;
  return 0.5 * static_cast<double>(floor_[moment] - bottom) / static_cast<double>(top - bottom);
}

}  // namespace velo::memory
