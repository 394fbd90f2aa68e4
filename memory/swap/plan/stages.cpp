// Making stages from times, and the bound as a longest path.
#include "memory/swap/plan/stages.hpp"

#include <algorithm>

namespace velo::memory {
namespace {

std::vector<std::int64_t> ends_of(const std::vector<lifetime>& buffers, const plan_uses& uses) {
  std::vector<std::int64_t> ends;
  for (const plan_work& w : uses.work) ends.push_back(w.time);
  if (ends.empty()) {
    for (const plan_use& u : uses.uses) ends.push_back(u.time);
    for (const lifetime& b : buffers) ends.insert(ends.end(), {b.lower, b.upper - 1});
  }
  std::int64_t last = ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
  for (const lifetime& b : buffers) last = std::max(last, b.upper - 1);
  ends.push_back(last);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

void visit_stages(swap_stages& step, const std::vector<lifetime>& buffers, const plan_uses& uses) {
  const auto stage_of = [&](std::int64_t time) {
    return static_cast<std::int32_t>(std::lower_bound(step.ends.begin(), step.ends.end(), time) -
                                     step.ends.begin());
  };
  for (const lifetime& b : buffers) {
    const std::int32_t first = stage_of(b.lower), last = stage_of(b.upper - 1);
    step.buffers.push_back({b.size, first, last, {{first, true}}, false});
  }
  std::vector<bool> used(buffers.size());
  for (const plan_use& u : uses.uses) {
    used[u.buffer] = true;
    step.buffers[u.buffer].visits.push_back({stage_of(u.time), u.access == VELO_ACCESS_WRITE});
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::vector<swap_stages::visit>& visits = step.buffers[i].visits;
    if (!used[i]) visits.push_back({step.buffers[i].last, false});
    std::stable_sort(visits.begin(), visits.end(),
                     [](const auto& a, const auto& b) { return a.stage < b.stage; });
    std::size_t kept = 0;
    for (std::size_t x = 1; x < visits.size(); ++x) {
      if (visits[x].stage != visits[kept].stage) {
        visits[++kept] = visits[x];
      } else {
        visits[kept].writes = visits[kept].writes || visits[x].writes;
      }
    }
    visits.resize(kept + 1);
  }
}

// The last visit at or before a stage; -1: none.
std::int32_t visit_at(const swap_stages::buffer& b, std::int32_t stage) {
  const auto after =
      std::upper_bound(b.visits.begin(), b.visits.end(), stage,
                       [](std::int32_t s, const swap_stages::visit& v) { return s < v.stage; });
  return static_cast<std::int32_t>(after - b.visits.begin()) - 1;
}

// A buffer and the stage of its next use or last write.
struct distant {
  std::int32_t stage;
  std::int64_t size;
  bool here;  // it cannot be out in this stage
};

// Buffers alive at the end of a stage that are used again, sorted by next use. `stay`: bytes of the
// other buffers, which would never be brought back.
std::vector<distant> coming(const swap_stages& step, std::int32_t stage, std::int64_t& stay) {
  std::vector<distant> all;
  stay = 0;
  for (const std::int32_t i : step.present[stage]) {
    const swap_stages::buffer& b = step.buffers[i];
    const std::int32_t at = visit_at(b, stage);
    if (at + 1 == static_cast<std::int32_t>(b.visits.size())) {
      stay += b.size;
    } else {
      all.push_back({b.visits[at + 1].stage, b.size, b.fixed || b.visits[at].stage == stage});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const distant& a, const distant& b) { return a.stage < b.stage; });
  return all;
}

// The last visit up to visit `at` that writes the buffer; the first visit always does.
std::int32_t write_before(const swap_stages::buffer& b, std::int32_t at) {
  while (!b.visits[at].writes) --at;
  return at;
}

// Buffers that may be out in a stage, sorted by last write, latest first; they cannot have been
// stored before that write. `stay`: bytes of the buffers that cannot be out.
std::vector<distant> gone(const swap_stages& step, std::int32_t stage, std::int64_t& stay) {
  std::vector<distant> all;
  stay = 0;
  for (const std::int32_t i : step.present[stage]) {
    const swap_stages::buffer& b = step.buffers[i];
    const std::int32_t at = visit_at(b, stage);
    const bool last = at + 1 == static_cast<std::int32_t>(b.visits.size());
    if (b.fixed || last || b.visits[at].stage == stage) {
      stay += b.size;
    } else {
      all.push_back({b.visits[write_before(b, at)].stage, b.size, false});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const distant& a, const distant& b) { return a.stage > b.stage; });
  return all;
}

}  // namespace

swap_stages make_stages(const std::vector<lifetime>& buffers, const plan_uses& uses, double seconds,
                        std::int64_t least) {
  swap_stages step;
  step.ends = ends_of(buffers, uses);
  const auto count = static_cast<std::size_t>(step.count());
  step.seconds.assign(count, uses.work.empty() ? seconds / static_cast<double>(count) : 0);
  for (const plan_work& w : uses.work)
    step.seconds[std::lower_bound(step.ends.begin(), step.ends.end(), w.time) -
                 step.ends.begin()] += w.seconds;
  visit_stages(step, buffers, uses);
  step.live.resize(count);
  step.needed.resize(count);
  step.present.resize(count);
  for (std::size_t i = 0; i < step.buffers.size(); ++i) {
    swap_stages::buffer& b = step.buffers[i];
    b.fixed = b.size < least;
    for (std::int32_t s = b.first; s <= b.last; ++s) {
      step.live[s] += b.size;
      step.present[s].push_back(static_cast<std::int32_t>(i));
      if (b.fixed) step.needed[s] += b.size;
    }
    if (b.fixed) continue;
    for (const swap_stages::visit& v : b.visits) step.needed[v.stage] += b.size;
    for (std::int32_t s = b.visits.back().stage + 1; s <= b.last; ++s) step.needed[s] += b.size;
  }
  return step;
}

// lost[s]: the bound for the step up to the beginning of stage s.
double swap_bound(const swap_stages& step, std::int64_t budget, double out_rate, double in_rate) {
  const std::int32_t count = step.count();
  std::vector<double> lost(count + 1), before(count + 1);  // before: seconds of stages until then
  for (std::int32_t s = 0; s < count; ++s) before[s + 1] = before[s] + step.seconds[s];
  for (std::int32_t s = 0; s < count; ++s) {
    if (s > 0) lost[s] = std::max(lost[s], lost[s - 1]);
    std::int64_t stay = 0, moved = 0;
    const std::vector<distant> away = gone(step, s, stay);
    for (std::size_t x = 0; x < away.size(); ++x) {
      moved += away[x].size;
      if (x + 1 < away.size() && away[x + 1].stage == away[x].stage) continue;
      const std::int64_t bytes = moved - std::max<std::int64_t>(budget - stay, 0);
      const double span = before[s] - before[away[x].stage + 1];
      lost[s] =
          std::max(lost[s], lost[away[x].stage] + static_cast<double>(bytes) / out_rate - span);
    }
    moved = 0;
    const std::vector<distant> wanted = coming(step, s, stay);
    for (const distant& d : wanted) stay += d.here ? d.size : 0;
    for (std::size_t x = 0; x < wanted.size(); ++x) {
      moved += wanted[x].size;
      if (wanted[x].here) stay -= wanted[x].size;
      if (x + 1 < wanted.size() && wanted[x + 1].stage == wanted[x].stage) continue;
      const std::int64_t bytes = moved - std::max<std::int64_t>(budget - stay, 0);
      const double span = before[wanted[x].stage] - before[s + 1];
      lost[wanted[x].stage] =
          std::max(lost[wanted[x].stage], lost[s] + static_cast<double>(bytes) / in_rate - span);
    }
  }
  return count == 0 ? 0 : *std::max_element(lost.begin(), lost.end());
}

}  // namespace velo::memory
