// Computing, changing and reverting tables of stages.
#include "memory/recompute/stages.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace velo::memory {

stage_table::stage_table(const op_graph& graph, std::int64_t budget,
                         const std::vector<op_step>& steps)
    : graph_(graph),
      budget_(budget),
      count_(graph.size()),
      marks_(at(count_ + 1, 0), 0),
      runs_(count_),
      starts_(count_),
      live_(static_cast<std::size_t>(count_) + 1, 0),
      peak_(count_, 0),
      cost_(count_, 0),
      last_use_(count_, -1),
      visited_(count_, 0) {
  std::vector<std::uint8_t> now(count_, 0);
  std::int32_t stage = 0;
  for (const op_step& s : steps) {
    now[s.op] = s.computes ? is_there : 0;
    if (!s.computes || s.op != stage) continue;
    ++stage;
    std::copy(now.begin(), now.end(), marks_.begin() + static_cast<std::ptrdiff_t>(at(stage, 0)));
  }
  for (std::int32_t i = 0; i < count_; ++i) marks_[at(count_, i)] = graph.keep[i];
  rebuild();
  for (std::int32_t t = count_; t-- > 1;) {
    for (std::int32_t i = 0; i < t; ++i)
      if (has(t, i)) trim(t, i);
  }
  edits_.clear();
}

void stage_table::rebuild() {
  for (std::int32_t t = 0; t <= count_; ++t) {  // an output in memory was computed before
    live_[t] = 0;
    if (t > 0) starts_[t - 1].clear();
    if (t < count_) runs_[t].clear();
    for (std::int32_t i = 0; i < t; ++i) {
      marks_[at(t, i)] &= is_there;
      if (!has(t, i)) continue;
      live_[t] += graph_.bytes[i];
      if (!has(t - 1, i) && i != t - 1) starts_[t - 1].push_back(i);
    }
    if (t < count_) marks_[at(t, t)] = 0;
  }
  for (std::int32_t t = 0; t < count_; ++t) work_out(t);
}

std::vector<op_step> stage_table::steps() const {
  std::vector<op_step> all;
  std::vector<std::int32_t> last_use(count_, -1);
  for (std::int32_t t = 0; t < count_; ++t) {
    for (std::int32_t i = 0; i < t; ++i)
      if ((marks_[at(t, i)] & (is_there | is_used)) == is_there && !has(t + 1, i))
        all.push_back({i, false});
    for (const std::int32_t op : runs_[t]) {
      last_use[op] = op;
      for (const std::int32_t from : graph_.inputs[op]) last_use[from] = op;
    }
    const auto free_after = [&](std::int32_t what, std::int32_t op) {
      if (last_use[what] == op && !has(t + 1, what)) all.push_back({what, false});
    };
    for (const std::int32_t op : runs_[t]) {
      all.push_back({op, true});
      for (const std::int32_t from : graph_.inputs[op]) free_after(from, op);
      free_after(op, op);
    }
  }
  return all;
}

// Computes the operations and uses of a stage, its seconds and its peak of bytes.
void stage_table::work_out(std::int32_t t) {
  std::uint8_t* marks = &marks_[at(t, 0)];
  for (const std::int32_t op : runs_[t]) {
    marks[op] &= static_cast<std::uint8_t>(~runs_here);
    for (const std::int32_t from : graph_.inputs[op])
      marks[from] &= static_cast<std::uint8_t>(~is_used);
  }
  seconds_ -= cost_[t];
  over_ -= excess(t);
  std::vector<std::int32_t>& runs = runs_[t];
  runs.clear();
  open_.clear();
  const auto want = [&](std::int32_t op) {
    if ((marks[op] & runs_here) != 0) return;
    marks[op] |= runs_here;
    runs.push_back(op);
    open_.push_back(op);
  };
  want(t);
  for (const std::int32_t op : starts_[t]) want(op);
  while (!open_.empty()) {
    const std::int32_t op = open_.back();
    open_.pop_back();
    for (const std::int32_t from : graph_.inputs[op])
      if ((marks[from] & is_there) == 0) want(from);
  }
  std::sort(runs.begin(), runs.end());
  for (const std::int32_t op : runs) {
    last_use_[op] = op;
    for (const std::int32_t from : graph_.inputs[op]) last_use_[from] = op;
  }
  double cost = 0;
  std::int64_t live = live_[t], peak = live;
  const std::uint8_t* next = &marks_[at(t + 1, 0)];
  const auto ends_here = [&](std::int32_t what, std::int32_t op) {
    return last_use_[what] == op && (next[what] & is_there) == 0;
  };
  for (const std::int32_t op : runs) {
    cost += graph_.seconds[op];
    live += graph_.bytes[op];
    peak = std::max(peak, live + graph_.workspace[op]);
    for (const std::int32_t from : graph_.inputs[op]) {
      marks[from] |= is_used;
      if (ends_here(from, op)) live -= graph_.bytes[from];
    }
    if (ends_here(op, op)) live -= graph_.bytes[op];
  }
  cost_[t] = cost;
  peak_[t] = peak;
  seconds_ += cost;
  over_ += excess(t);
  worked_ += 4 + static_cast<std::int64_t>(runs.size());
}

// Inverts an output's presence in a run of stages in which it is equal.
void stage_table::change(const edit& e) {
  const std::int64_t bytes = e.there ? graph_.bytes[e.op] : -graph_.bytes[e.op];
  const auto starts_at = [&](std::int32_t stage, bool yes) {
    if (stage < 0 || stage >= count_ || stage == e.op) return;
    std::vector<std::int32_t>& list = starts_[stage];
    if (yes) {
      list.push_back(e.op);
    } else {
      list.erase(std::find(list.begin(), list.end(), e.op));
    }
  };
  // The output becomes present or absent at the beginning of the run, and the opposite after its
  // end.
  if (!has(e.first - 1, e.op)) starts_at(e.first - 1, e.there);
  if (e.last < count_ && has(e.last + 1, e.op)) starts_at(e.last, !e.there);
  for (std::int32_t u = e.first; u <= e.last; ++u) {
    marks_[at(u, e.op)] ^= is_there;
    live_[u] += bytes;
  }
  work_out(e.first - 1);
  for (std::int32_t u = e.first; u < e.last; ++u) {
    if ((marks_[at(u, e.op)] & (is_used | runs_here)) != 0) {
      work_out(u);
      continue;
    }
    over_ -= excess(u);
    peak_[u] += bytes;
    over_ += excess(u);
  }
  worked_ += (e.last - e.first) / 8;
  if (e.last < count_) work_out(e.last);
}

void stage_table::undo(std::size_t from) {
  while (edits_.size() > from) {
    edit e = edits_.back();
    edits_.pop_back();
    e.there = !e.there;
    change(e);
  }
}

// The last stage before this one in which an output was in memory or computed.
std::int32_t stage_table::last_seen(std::int32_t stage, std::int32_t op) const {
  std::int32_t s = stage - 1;
  while ((marks_[at(s, op)] & (runs_here | is_there)) == 0) --s;
  return s;
}

// Keeps an output in memory until this stage, which would otherwise recompute it.
bool stage_table::stay(std::int32_t stage, std::int32_t op) {
  if (op >= stage || has(stage, op)) return false;
  const edit e{op, last_seen(stage, op) + 1, stage, true};
  edits_.push_back(e);
  change(e);
  trim_inputs(stage, op);
  return true;
}

// Frees an output after its previous use if this stage frees it without using it.
void stage_table::trim(std::int32_t stage, std::int32_t op) {
  if (has(stage, op) && !uses(stage, op) && !has(stage + 1, op)) drop(stage, op);
}

// Trims the inputs of an output that a stage no longer computes.
void stage_table::trim_inputs(std::int32_t stage, std::int32_t op) {
  if (runs(stage, op)) return;
  const std::size_t first = gone_.size();  // trimming may recurse into this function
  gone_.push_back(op);
  ++visits_;
  while (gone_.size() > first) {
    const std::int32_t gone = gone_.back();
    gone_.pop_back();
    for (const std::int32_t from : graph_.inputs[gone]) {
      if (has(stage, from)) {
        trim(stage, from);
      } else if (!runs(stage, from) && visited_[from] != visits_) {
        visited_[from] = visits_;
        gone_.push_back(from);
      }
    }
  }
}

// Frees an output that is in memory at the beginning of a stage after its use before that, so that
// it is recomputed for its next use.
bool stage_table::drop(std::int32_t stage, std::int32_t op) {
  if (!has(stage, op)) return false;
  std::int32_t last = stage, first = stage;
  while (last < count_ && !uses(last, op) && has(last + 1, op)) ++last;
  if (last == count_) return false;  // the output is to be kept
  while (first > op + 1 && has(first - 1, op) && !uses(first - 1, op)) --first;
  const edit e{op, first, last, false};
  edits_.push_back(e);
  change(e);
  trim_inputs(first - 1, op);
  return true;
}

std::int32_t stage_table::worst_stage() const {
  std::int32_t worst = 0;
  for (std::int32_t t = 1; t < count_; ++t)
    if (peak_[t] > peak_[worst]) worst = t;
  return worst;
}

// Frees one of the outputs in memory at the beginning or end of a stage: the one with the least
// seconds a byte among a random few.
bool stage_table::drop_somewhere(std::int32_t stage, plan_random& random) {
  std::int32_t best = -1;
  double least = 0;
  const auto offset = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(count_)));
  int seen = 0;
  for (std::int32_t k = 0; k < count_ && seen < 6; ++k) {
    const std::int32_t op = (offset + k) % count_;
    const bool found = has(stage, op);  // otherwise computed in this stage for later ones
    if ((!found && !has(stage + 1, op)) || graph_.bytes[op] == 0) continue;
    ++seen;
    const double score =
        graph_.seconds[op] / static_cast<double>(graph_.bytes[op]) * (0.25 + random.unit());
    if (best < 0 || score < least) {
      least = score;
      best = op;
    }
  }
  return best >= 0 && drop(has(stage, best) ? stage : stage + 1, best);
}

bool stage_table::mend(plan_random& random, int tries) {
  for (; over_ > 0 && tries > 0; --tries) drop_somewhere(worst_stage(), random);
  return over_ == 0;
}

bool stage_table::repair(plan_random& random) {
  const bool mended = mend(random, 4 * count_);
  edits_.clear();
  return mended;
}

void stage_table::fill() {
  struct again {
    double worth;
    std::int32_t stage, op;
  };
  std::vector<again> all;
  for (std::int32_t t = 0; t < count_; ++t)
    for (const std::int32_t op : runs_[t])
      if (op != t)
        all.push_back(
            {graph_.seconds[op] / static_cast<double>(std::max<std::int64_t>(graph_.bytes[op], 1)),
             t, op});
  std::stable_sort(all.begin(), all.end(),
                   [](const again& a, const again& b) { return a.worth > b.worth; });
  for (const again& a : all) {
    if (!runs(a.stage, a.op)) continue;  // removed together with another
    bool room = true;
    const std::int32_t seen = last_seen(a.stage, a.op);
    for (std::int32_t u = seen + 1; u < a.stage && room; ++u)
      room = peak_[u] + graph_.bytes[a.op] <= budget_;
    if (!room) continue;
    const std::size_t before = edits_.size();
    const double seconds = seconds_;
    stay(a.stage, a.op);
    if (over_ > 0 || seconds_ > seconds) undo(before);
  }
  edits_.clear();
}

void stage_table::anneal(plan_random& random, std::int64_t work) {
  if (count_ < 2) return;
  const double once = seconds_once(graph_);
  const std::int64_t end = worked_ + work, begin = worked_;
  std::vector<std::uint8_t> best = marks_;
  double least = fits() ? seconds_ : std::numeric_limits<double>::infinity();
  while (worked_ < end && least > once * (1 + 1e-12)) {
    worked_ += 2;
    const double left = static_cast<double>(end - worked_) / static_cast<double>(end - begin);
    const double heat = 0.5 * once / count_ * left * left;
    const double before = seconds_;
    edits_.clear();
    const auto stage =
        static_cast<std::int32_t>(1 + random.below(static_cast<std::uint64_t>(count_ - 1)));
    const std::vector<std::int32_t>& runs = runs_[stage];
    bool moved = false;
    if (runs.size() > 1 && random.below(4) != 0) {
      moved = stay(stage, runs[random.below(runs.size() - 1)]);
    } else if (random.below(8) == 0) {
      moved = drop_somewhere(stage, random);
    }
    if (!moved) continue;
    mend(random, 8);
    const bool accepted =
        over_ == 0 && (seconds_ <= before || random.unit() < std::exp((before - seconds_) / heat));
    if (!accepted) {
      undo(0);
      continue;
    }
    if (seconds_ < least * (1 - 1e-12)) {
      least = seconds_;
      best = marks_;
    }
  }
  edits_.clear();
  if (marks_ == best) return;
  marks_.swap(best);
  rebuild();
}

}  // namespace velo::memory
