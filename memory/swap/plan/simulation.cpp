// The simulation: two links, a clock, and the state of every buffer.
#include "memory/swap/plan/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "memory/swap/plan/remake.hpp"

namespace velo::memory {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// The most stages of a recomputation. The limit is lower when a buffer is dropped, since more of
// its inputs may be dropped before it is recomputed.
constexpr std::size_t most_dropping = 6, most_making = 64;
constexpr int most_tries = 12;

enum class where : std::uint8_t { here, leaving, away, coming, dropped };

class simulation {
 public:
  simulation(const swap_stages& step, const velo_swap_options& options, const swap_ways& ways)
      : step_(step),
        options_(options),
        ways_(ways),
        remake_(step),
        budget_(static_cast<std::int64_t>(options.budget)),
        of_(step.buffers.size()),
        prices_(step.buffers.size()),
        priced_(step.buffers.size(), -1),
        crowd_(step.live),
        crowded_(step.count() + 1),
        clock_(step.count() + 1) {
    for (std::int32_t s = 0; s < step.count(); ++s) clock_[s + 1] = clock_[s] + step.seconds[s];
  }

  // Buffers that must not be dropped, since another run found that they could not be recomputed.
  // lost() returns such buffers of this run.
  void spare(const std::vector<std::int32_t>& buffers) {
    for (const std::int32_t i : buffers) of_[i].spared = true;
  }
  const std::vector<std::int32_t>& lost() const { return lost_; }

  std::optional<swap_schedule> run() {
    for (stage_ = 0; stage_ < step_.count(); ++stage_) {
      if (!begin_stage()) return std::nullopt;
      plan_.moves.push_back({swap_move::kind::begins});
      note_used();
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
    bool spared = false;     // must not be dropped
    bool stored = false;     // the copy in the other tier is up to date
    std::int32_t visit = 0;  // the last visit that has begun
    // While absent: the buffer is not counted in crowd_ up to this stage.
    std::int32_t absent_to = 0;
    std::int32_t stay = -1;  // the last stay
    std::size_t came = 0;    // index of the move that began the stay
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

  // Waits until the stage's buffers are in memory and all live ones fit. Returns false if they
  // never do.
  bool begin_stage() {
    for (const std::int32_t i : step_.present[stage_])
      if (buffer(i).first == stage_) coming_now_ += buffer(i).size;
    release(false);
    for (;;) {
      pump();
      if (is_ready()) break;
      if (ways_.drops_below > 0 && remake_or_drop()) continue;
      if (!lost_.empty()) return false;
      const double next = std::min(out_.end, in_.end);
      if (next < never) {
        advance_to(next);
        continue;
      }
      if (!lagging_.empty()) {
        release(true);
      } else if (!force_out() && !force_in()) {
        return false;
      }
    }
    resident_ += coming_now_;
    coming_now_ = 0;
    lacking_ = 0;
    plan_.peak = std::max(plan_.peak, resident_);
    for (const std::int32_t i : step_.present[stage_]) {
      state& s = of_[i];
      const auto& visits = buffer(i).visits;
      if (buffer(i).first == stage_) {
        begin_stay(i, swap_move::kind::take);
        s.at = where::here;
        s.stored = false;
        s.visit = 0;
      } else if (next_use(i) == stage_) {
        ++s.visit;
        s.stored = s.stored && !visits[s.visit].writes;
      }
    }
    return true;
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
    plan_.moves.push_back({swap_move::kind::ends});
    for (const std::int32_t i : step_.present[stage_]) {
      if (buffer(i).last != stage_) continue;
      resident_ -= buffer(i).size;
      plan_.moves.push_back({swap_move::kind::give, of_[i].stay});
      end_stay(i);
    }
  }

  void begin_stay(std::int32_t i, swap_move::kind how) {
    of_[i].stay = static_cast<std::int32_t>(plan_.stays.size());
    of_[i].came = plan_.moves.size();
    swap_stay& begun = plan_.stays.emplace_back();
    begun.buffer = i;
    begun.bytes = buffer(i).size;
    begun.begin = moment_++;
    plan_.moves.push_back({how, of_[i].stay});
  }
  void end_stay(std::int32_t i) { plan_.stays[of_[i].stay].end = moment_++; }

  // Notes the buffers that stay in memory during the stage: used in it, too small to move, or past
  // their last use.
  void note_used() {
    plan_.stage_ends.push_back(step_.ends[stage_]);
    std::vector<std::int64_t> used;
    for (const std::int32_t i : step_.present[stage_]) {
      const swap_stages::buffer& b = buffer(i);
      const bool last = of_[i].visit + 1 == static_cast<std::int32_t>(b.visits.size());
      if (b.fixed || last || b.visits[of_[i].visit].stage == stage_) used.push_back(i);
    }
    plan_.used.push_back(std::move(used));
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

  // Frees the memory of buffers whose copy out is done.
  void release(bool all) {
    const auto may = [&](std::int32_t i) {
      const state& s = of_[i];
      if (!all && stage_ < buffer(i).visits[s.visit].stage + options_.release_stages) return false;
      of_[i].at = where::away;
      resident_ -= buffer(i).size;
      end_stay(i);
      return true;
    };
    lagging_.erase(std::remove_if(lagging_.begin(), lagging_.end(), may), lagging_.end());
  }

  void pump() {
    while (ways_.links && out_.buffer < 0) {
      const std::int32_t chosen = choose_out(first_crowded());
      if (chosen < 0) break;
      send(chosen);
    }
    if (in_.buffer < 0) {
      const std::int32_t first = first_wanted();
      // A buffer needed later must not take the memory that is being freed now.
      const bool early = first >= 0 && next_use(first) > stage_;
      if (first >= 0 && !(lacking_ > 0 && early) && has_room(first)) fetch(first);
    }
  }

  // The first stage, from the current one on, whose buffers exceed the budget.
  std::int32_t first_crowded() const {
    for (std::int32_t s = stage_; s < step_.count(); ++s)
      if (crowd_[s] > budget_) return s;
    return step_.count();
  }

  std::int32_t choose_out(std::int32_t crowded) {
    if (crowded >= step_.count()) return -1;
    if (ways_.policy == VELO_SWAP_SMART)
      for (std::int32_t s = stage_; s < step_.count(); ++s)
        crowded_[s + 1] = (s > stage_ ? crowded_[s] : 0) + (crowd_[s] > budget_);
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
    return ways_.policy == VELO_SWAP_SMART && punctual >= 0 ? punctual : best;
  }

  double worth(std::int32_t i, std::int32_t back) const {
    if (ways_.policy == VELO_SWAP_FURTHEST) return back;
    const double relieved = crowded_[back], crowded = crowded_.back();
    const double share = static_cast<double>(buffer(i).size) / static_cast<double>(budget_);
    return relieved / crowded + 2 * std::cbrt(share);
  }

  // Whether a buffer can be moved out and back before its next use, if no stage stalls until then.
  bool is_punctual(std::int32_t i, std::int32_t back) const {
    return out_seconds(i) + in_seconds(i) <= clock_[back] - clock_[stage_ + 1];
  }

  double out_seconds(std::int32_t i) const {
    return of_[i].stored ? 0 : static_cast<double>(buffer(i).size) / options_.out_bytes_per_second;
  }
  double in_seconds(std::int32_t i) const {
    return static_cast<double>(buffer(i).size) / options_.in_bytes_per_second;
  }

  // Subtracts an absent buffer from the stages before `back`.
  void relieve(std::int32_t i, std::int32_t back) {
    of_[i].absent_to = back;
    for (std::int32_t x = stage_; x < back; ++x) crowd_[x] -= buffer(i).size;
  }

  void send(std::int32_t i) {
    state& s = of_[i];
    const std::int32_t back = next_use(i);
    const double end = now_ + out_seconds(i);
    if (!s.stored) plan_.bytes_out += buffer(i).size;
    note(VELO_SWAP_ACTION_OUT, i, end);
    plan_.stays[s.stay].leaves = true;
    plan_.moves.push_back({swap_move::kind::out, s.stay, s.stored});
    if (s.stored) plan_.moves[s.came].stored = true;
    s.stored = true;
    s.at = where::leaving;
    relieve(i, back);
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

  // Whether a buffer fits now and in every stage up to its next use.
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
    begin_stay(i, swap_move::kind::in);
    plan_.peak = std::max(plan_.peak, resident_);
    plan_.bytes_in += buffer(i).size;
    in_ = {i, now_ + in_seconds(i)};
    note(VELO_SWAP_ACTION_IN, i, in_.end);
  }

  void note(velo_swap_action action, std::int32_t i, double end) {
    const std::int64_t before = step_.ends[std::min(next_use(i), step_.count() - 1)];
    const std::int64_t after = stage_ == 0 ? step_.ends[0] : step_.ends[stage_ - 1];
    plan_.transfers.push_back({action, i, after, before, now_, end, of_[i].stay});
  }

  // Makes room regardless of the cost, when both links are idle and the stage cannot begin.
  bool force_out() {
    if (!ways_.links) return false;
    if (lacking_ <= 0 && resident_ + coming_now_ <= budget_ && !waits_for_room()) return false;
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

  // Recomputes a buffer for which the stage waits, or drops one to make room, if that costs less
  // than the transfers. Returns false if neither does.
  bool remake_or_drop() {
    lacking_ = resident_ + coming_now_ - budget_;
    for (const std::int32_t i : step_.present[stage_]) {
      const bool wanted = buffer(i).first != stage_ && next_use(i) == stage_;
      const bool gone = of_[i].at == where::dropped || of_[i].at == where::away;
      if (!wanted || !gone) continue;
      const swap_remake::cost c = cost_of(i, most_making);
      if (c.seconds == never && of_[i].at == where::dropped) lost_.push_back(i);
      if (c.seconds == never) continue;
      if (of_[i].at == where::away && !is_cheaper(c, in_wait(i))) continue;
      const std::int64_t beyond = resident_ + buffer(i).size + c.bytes - budget_;
      if (beyond <= 0) return remake(i, c);
      lacking_ = std::max(lacking_, beyond);
    }
    return lost_.empty() && lacking_ > 0 && drop_one();
  }
  swap_remake::cost cost_of(std::int32_t i, std::size_t most) const {
    return remake_.of(i, stage_, most, [&](std::int32_t j) {
      return of_[j].at == where::here && buffer(j).first < stage_ && buffer(j).last >= stage_;
    });
  }
  bool is_cheaper(const swap_remake::cost& c, double seconds) const {
    return c.seconds < ways_.drops_below * seconds;
  }
  double in_wait(std::int32_t i) const {
    return (in_.end < never ? in_.end - now_ : 0) + in_seconds(i);
  }

  bool remake(std::int32_t i, const swap_remake::cost& c) {
    for (std::int32_t x = stage_; x < of_[i].absent_to; ++x) crowd_[x] += buffer(i).size;
    of_[i].at = where::here;
    begin_stay(i, swap_move::kind::take);
    resident_ += buffer(i).size + c.bytes;
    plan_.peak = std::max(plan_.peak, resident_);
    note(VELO_SWAP_ACTION_MAKE, i, now_ + c.seconds);
    plan_.remaking += c.seconds;
    advance(now_ + c.seconds);
    resident_ -= c.bytes;
    return true;
  }

  bool may_drop(std::int32_t i) const {
    if (buffer(i).first == stage_ || buffer(i).fixed || of_[i].at != where::here) return false;
    const std::int32_t back = next_use(i);
    return !of_[i].spared && back > stage_ && back < step_.count();
  }
  // Seconds a byte for recomputing a buffer: computed again if `now`, else the last estimate.
  double price(std::int32_t i, bool now) {
    const auto size = static_cast<double>(buffer(i).size);
    if (now) {
      const swap_remake::cost c = cost_of(i, most_dropping);
      const double link =
          size / options_.out_bytes_per_second + size / options_.in_bytes_per_second;
      const bool fits = c.bytes + buffer(i).size <= budget_;
      prices_[i] = fits && is_cheaper(c, link) ? c.seconds / size : never;
      priced_[i] = stage_;
    }
    return std::max(prices_[i], step_.seconds[buffer(i).first] / size);
  }

  // Drops the buffer with the least recomputation time for its size. It computes the price only of
  // the buffers with the best earlier estimates.
  bool drop_one() {
    for (;;) {
      std::int32_t best = -1;
      double least = never;
      for (const std::int32_t i : step_.present[stage_]) {
        if (!may_drop(i) || (prices_[i] == never && priced_[i] == stage_)) continue;
        const double known = prices_[i] == never ? 0 : price(i, false);
        if (known >= least) continue;
        least = known;
        best = i;
      }
      if (best < 0) return false;
      if (priced_[best] == stage_) {
        drop(best);
        return true;
      }
      price(best, true);
    }
  }
  void drop(std::int32_t i) {
    note(VELO_SWAP_ACTION_DROP, i, now_);
    of_[i].at = where::dropped;
    relieve(i, next_use(i));
    resident_ -= buffer(i).size;
    end_stay(i);
  }

  const swap_stages& step_;
  const velo_swap_options& options_;
  const swap_ways ways_;
  const swap_remake remake_;
  const std::int64_t budget_;
  std::vector<state> of_;
  // The price of each buffer, computed in stage priced_; `never`: must not be dropped.
  std::vector<double> prices_;
  std::vector<std::int32_t> priced_;
  std::vector<std::int64_t> crowd_;    // by stage: bytes in memory
  std::vector<std::int32_t> crowded_;  // crowded stages from this one to before a stage
  std::vector<double> clock_;          // by stage: seconds of those before it
  std::int32_t stage_ = 0;
  double now_ = 0, total_ = 0;
  std::int64_t resident_ = 0, coming_now_ = 0;
  std::int64_t lacking_ = 0;  // bytes to free before the stage can begin
  link out_, in_;
  std::vector<std::int32_t> lagging_;  // stored, but their memory is not yet free
  std::vector<std::int32_t> lost_;     // dropped and impossible to recompute
  std::int64_t moment_ = 0;            // of the next begin or end of a stay
  swap_schedule plan_;
};

}  // namespace

std::optional<swap_schedule> simulate_swaps(const swap_stages& step,
                                            const velo_swap_options& options,
                                            const swap_ways& ways) {
  std::vector<std::int32_t> spared;
  for (int tries = 0; tries < most_tries; ++tries) {
    simulation run(step, options, ways);
    run.spare(spared);
    std::optional<swap_schedule> plan = run.run();
    if (plan || run.lost().empty()) return plan;
    spared.insert(spared.end(), run.lost().begin(), run.lost().end());
  }
  return std::nullopt;
}

}  // namespace velo::memory
