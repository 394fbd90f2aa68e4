// The step run in the planner's mind: two links, a clock, and what is where.
#include "memory/swap_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <limits>

#include "core/failure.hpp"
#include "memory/swap_stages.hpp"

namespace velo::memory {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

enum class where : std::uint8_t { here, leaving, away, coming };

class simulation {
 public:
  simulation(const swap_stages& step, const velo_swap_options& options)
      : step_(step),
        options_(options),
        budget_(static_cast<std::int64_t>(options.budget)),
        of_(step.buffers.size()),
        crowd_(step.live) {}

  swap_schedule run() {
    for (stage_ = 0; stage_ < step_.count(); ++stage_) {
      begin_stage();
      advance(now_ + step_.seconds[stage_]);
      end_stage();
    }
    plan_.stall = now_ - total_;
    plan_.compute = total_;
    return std::move(plan_);
  }

 private:
  struct state {
    where at = where::here;
    bool stored = false;         // what the other tier has of it is up to date
    std::int32_t visit = 0;      // the last one that has begun
    std::int32_t absent_to = 0;  // while it is not here: its absence relieves stages up to this one
  };
  struct link {
    std::int32_t buffer = -1;
    double end = never;
  };

  const swap_stages::buffer& buffer(std::int32_t i) const { return step_.buffers[i]; }
  std::int32_t next_use(std::int32_t i) const {
    const auto& visits = buffer(i).visits;
    const std::size_t next = of_[i].visit + 1;
    return next < visits.size() ? visits[next].stage : std::numeric_limits<std::int32_t>::max();
  }

  // Waits until all that the stage needs is here and what is alive fits.
  void begin_stage() {
    for (const std::int32_t i : step_.present[stage_])
      if (buffer(i).first == stage_) coming_now_ += buffer(i).size;
    release(false);
    for (;;) {
      pump();
      if (is_ready()) break;
      const double next = std::min(out_.end, in_.end);
      if (next < never) {
        advance_to(next);
        continue;
      }
      if (!lagging_.empty()) {
        release(true);
      } else if (!force_out() && !force_in()) {
        core::fail(VELO_ERR_INTERNAL, "plan", "a way to begin each stage", "none");
      }
    }
    resident_ += coming_now_;
    coming_now_ = 0;
    plan_.peak = std::max(plan_.peak, resident_);
    for (const std::int32_t i : step_.present[stage_]) {
      state& s = of_[i];
      const auto& visits = buffer(i).visits;
      if (buffer(i).first == stage_) {
        s = {};
      } else if (next_use(i) == stage_) {
        ++s.visit;
        s.stored = s.stored && !visits[s.visit].writes;
      }
    }
  }

  bool is_ready() const {
    if (resident_ + coming_now_ > budget_) return false;
    for (const std::int32_t i : step_.present[stage_])
      if (buffer(i).first != stage_ && next_use(i) == stage_ && of_[i].at != where::here)
        return false;
    return true;
  }

  void end_stage() {
    total_ += step_.seconds[stage_];
    for (const std::int32_t i : step_.present[stage_])
      if (buffer(i).last == stage_) resident_ -= buffer(i).size;
  }

  void advance(double until) {
    while (std::min(out_.end, in_.end) <= until) {
      advance_to(std::min(out_.end, in_.end));
      pump();
    }
    now_ = until;
  }

  void advance_to(double time) {
    now_ = std::max(now_, time);
    if (out_.end <= time) {
      lagging_.push_back(out_.buffer);
      release(false);
      out_ = {};
    }
    if (in_.end <= time) {
      of_[in_.buffer].at = where::here;
      in_ = {};
    }
  }

  // Memory of what has been stored, once it may be free.
  void release(bool all) {
    const auto may = [&](std::int32_t i) {
      const state& s = of_[i];
      if (!all && stage_ < buffer(i).visits[s.visit].stage + options_.release_stages) return false;
      of_[i].at = where::away;
      resident_ -= buffer(i).size;
      return true;
    };
    lagging_.erase(std::remove_if(lagging_.begin(), lagging_.end(), may), lagging_.end());
  }

  void pump() {
    while (out_.buffer < 0) {
      const std::int32_t chosen = choose_out(first_crowded());
      if (chosen < 0) break;
      send(chosen);
    }
    if (in_.buffer < 0) {
      const std::int32_t first = first_wanted();
      if (first >= 0 && has_room(first)) fetch(first);
    }
  }

  // The first stage from here on that will not fit.
  std::int32_t first_crowded() const {
    for (std::int32_t s = stage_; s < step_.count(); ++s)
      if (crowd_[s] > budget_) return s;
    return step_.count();
  }

  std::int32_t choose_out(std::int32_t crowded) const {
    if (crowded >= step_.count()) return -1;
    std::int32_t best = -1, punctual = -1;
    double most = -1, most_punctual = -1;
    for (const std::int32_t i : step_.present[stage_]) {
      if (buffer(i).fixed || of_[i].at != where::here) continue;
      const std::int32_t back = next_use(i);
      const bool relieves =
          back > crowded && back < step_.count() && buffer(i).visits[of_[i].visit].stage < crowded;
      const bool in_use = buffer(i).visits[of_[i].visit].stage == stage_;
      if (!relieves || in_use) continue;
      const double value = worth(i, back);
      if (value > most) {
        most = value;
        best = i;
      }
      if (value > most_punctual && is_punctual(i, back)) {
        most_punctual = value;
        punctual = i;
      }
    }
    return options_.policy == VELO_SWAP_SMART && punctual >= 0 ? punctual : best;
  }

  double worth(std::int32_t i, std::int32_t back) const {
    if (options_.policy == VELO_SWAP_FURTHEST) return back;
    double relieved = 0, crowded = 0;
    for (std::int32_t s = stage_; s < step_.count(); ++s) {
      if (crowd_[s] <= budget_) continue;
      ++crowded;
      if (s < back) ++relieved;
    }
    const double share = static_cast<double>(buffer(i).size) / static_cast<double>(budget_);
    return relieved / std::max(crowded, 1.0) + 2 * std::cbrt(share);
  }

  // Away and back before its next use if no stage stalls until then.
  bool is_punctual(std::int32_t i, std::int32_t back) const {
    double until = now_;
    for (std::int32_t s = stage_ + 1; s < back; ++s) until += step_.seconds[s];
    return now_ + out_seconds(i) + in_seconds(i) <= until;
  }

  double out_seconds(std::int32_t i) const {
    return of_[i].stored ? 0 : static_cast<double>(buffer(i).size) / options_.out_bytes_per_second;
  }
  double in_seconds(std::int32_t i) const {
    return static_cast<double>(buffer(i).size) / options_.in_bytes_per_second;
  }

  void send(std::int32_t i) {
    state& s = of_[i];
    const std::int32_t back = next_use(i);
    const double end = now_ + out_seconds(i);
    if (!s.stored) plan_.bytes_out += buffer(i).size;
    note(true, i, end);
    s.stored = true;
    s.at = where::leaving;
    s.absent_to = back;
    for (std::int32_t x = stage_; x < back; ++x) crowd_[x] -= buffer(i).size;
    out_ = {i, end};
  }

  std::int32_t first_wanted() const {
    std::int32_t first = -1, least = std::numeric_limits<std::int32_t>::max();
    for (const std::int32_t i : step_.present[stage_]) {
      if (of_[i].at != where::away || next_use(i) >= least) continue;
      least = next_use(i);
      first = i;
    }
    return first;
  }

  // Nothing misses the room until the next use.
  bool has_room(std::int32_t i) const {
    const std::int32_t back = next_use(i);
    const std::int64_t size = buffer(i).size;
    if (resident_ + coming_now_ + size > budget_) return false;
    if (options_.prefetch_stages > 0 && back - stage_ > options_.prefetch_stages) return false;
    for (std::int32_t s = stage_; s < back; ++s)
      if (crowd_[s] + size > budget_) return false;
    return true;
  }

  void fetch(std::int32_t i) {
    for (std::int32_t x = stage_; x < of_[i].absent_to; ++x) crowd_[x] += buffer(i).size;
    of_[i].at = where::coming;
    resident_ += buffer(i).size;
    plan_.peak = std::max(plan_.peak, resident_);
    plan_.bytes_in += buffer(i).size;
    in_ = {i, now_ + in_seconds(i)};
    note(false, i, in_.end);
  }

  void note(bool out, std::int32_t i, double end) {
    const std::int64_t before = step_.ends[std::min(next_use(i), step_.count() - 1)];
    const std::int64_t after = stage_ == 0 ? step_.ends[0] : step_.ends[stage_ - 1];
    plan_.transfers.push_back({out, i, after, before, now_, end});
  }

  // Both links idle and the stage cannot begin: room is made whatever it costs.
  bool force_out() {
    if (resident_ + coming_now_ <= budget_ && !waits_for_room()) return false;
    std::int32_t best = -1;
    for (const std::int32_t i : step_.present[stage_]) {
      if (buffer(i).first == stage_ || buffer(i).fixed || of_[i].at != where::here) continue;
      const std::int32_t back = next_use(i);
      if (back <= stage_ || back >= step_.count()) continue;
      if (best < 0 || back > next_use(best)) best = i;
    }
    if (best < 0) return false;
    send(best);
    return true;
  }
  bool waits_for_room() const {
    const std::int32_t first = first_wanted();
    return first >= 0 && next_use(first) == stage_ &&
           resident_ + coming_now_ + buffer(first).size > budget_;
  }
  bool force_in() {
    const std::int32_t first = first_wanted();
    if (first < 0 || next_use(first) != stage_ ||
        resident_ + coming_now_ + buffer(first).size > budget_)
      return false;
    fetch(first);
    return true;
  }

  const swap_stages& step_;
  const velo_swap_options& options_;
  const std::int64_t budget_;
  std::vector<state> of_;
  std::vector<std::int64_t> crowd_;  // by stage: bytes that will be there
  std::int32_t stage_ = 0;
  double now_ = 0, total_ = 0;
  std::int64_t resident_ = 0, coming_now_ = 0;
  link out_, in_;
  std::vector<std::int32_t> lagging_;  // stored, but their memory is not free yet
  swap_schedule plan_;
};

__attribute__((format(printf, 2, 3))) void append(std::string& to, const char* format, ...) {
  char line[256];
  va_list values;
  va_start(values, format);
  std::vsnprintf(line, sizeof line, format, values);
  va_end(values);
  to += line;
}

void require_budget(const swap_stages& step, std::int64_t budget) {
  const auto most = std::max_element(step.needed.begin(), step.needed.end());
  if (most == step.needed.end() || *most <= budget) return;
  core::fail(
      VELO_ERR_ARGUMENT, "options.budget",
      core::text("at least %lld bytes, needed at once at time %lld", static_cast<long long>(*most),
                 static_cast<long long>(step.ends[most - step.needed.begin()])),
      core::text("%lld", static_cast<long long>(budget)));
}

}  // namespace

swap_schedule plan_swaps(const std::vector<lifetime>& buffers, const plan_uses& uses,
                         const velo_swap_options& options) {
  const swap_stages step =
      make_stages(buffers, uses, options.seconds, static_cast<std::int64_t>(options.least_bytes));
  require_budget(step, static_cast<std::int64_t>(options.budget));
  swap_schedule plan = simulation(step, options).run();
  plan.peak_live = step.live.empty() ? 0 : *std::max_element(step.live.begin(), step.live.end());
  plan.bound = swap_bound(step, static_cast<std::int64_t>(options.budget),
                          options.out_bytes_per_second, options.in_bytes_per_second);
  return plan;
}

std::string write_swaps(const swap_schedule& schedule, const velo_swap_options& options) {
  std::string all;
  append(all, "{\"policy\":\"%s\",\"budget\":%llu,\"bytes_live\":%lld,\"bytes_peak\":%lld,",
         options.policy == VELO_SWAP_SMART ? "smart" : "furthest",
         static_cast<unsigned long long>(options.budget),
         static_cast<long long>(schedule.peak_live), static_cast<long long>(schedule.peak));
  append(all, "\"bytes_out\":%lld,\"bytes_in\":%lld,", static_cast<long long>(schedule.bytes_out),
         static_cast<long long>(schedule.bytes_in));
  append(all, "\"compute_seconds\":%.9g,\"stall_seconds\":%.9g,\"bound_seconds\":%.9g,",
         schedule.compute, schedule.stall, schedule.bound);
  all += "\"transfers\":[";
  for (const swap_transfer& t : schedule.transfers) {
    append(all, "%s\n{\"action\":\"%s\",\"buffer\":%lld,\"after\":%lld,\"before\":%lld,",
           &t == schedule.transfers.data() ? "" : ",", t.out ? "out" : "in",
           static_cast<long long>(t.buffer), static_cast<long long>(t.after),
           static_cast<long long>(t.before));
    append(all, "\"begin\":%.9g,\"end\":%.9g}", t.begin, t.end);
  }
  return all + "\n]}\n";
}

}  // namespace velo::memory
