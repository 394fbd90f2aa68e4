// Ranks run until an input has not been made; the rank that makes it wakes them.
#include "sched/simulate/in_order.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/index.hpp"

namespace velo::sched {
namespace {

// The outputs of a stage for the next: their number, and the arrival times of those not yet taken.
struct stream {
  std::int64_t* times;
  std::uint32_t mask;  // room - 1
  std::int32_t result = 0, taken = 0;
  std::int32_t weights = 0;   // for gradients: W done, as long as W is in order, too
  std::int32_t maker = -1;    // rank
  std::int32_t waiting = -1;  // the rank that takes them, if it waits for the next
  bool last = false;          // the end of its chain: no stage takes them
  bool crosses = false;       // from one rank to another
};

// timed: computes times, too; else only whether the schedule can run.
template <bool timed>
class machines {
 public:
  machines(const schedule& pipeline, const ticks& scale)
      : shape_(pipeline.sizes()),
        scale_(scale),
        stages_(static_cast<std::size_t>(shape_.stages)),
        streams_(2 * stages_),
        room_(streams_.size() * first_room) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const bool forward = i < stages_;
      const auto stage = static_cast<std::int32_t>(forward ? i : i - stages_);
      stream& s = streams_[i];
      s.times = room_.data() + i * first_room;
      s.mask = first_room - 1;
      s.maker = pipeline.rank_of(stage);
      s.last = forward ? shape_.ends_chain(stage) : shape_.begins_chain(stage);
      s.crosses = !s.last && pipeline.rank_of(forward ? stage + 1 : stage - 1) != s.maker;
    }
    ranks_.reserve(static_cast<std::size_t>(shape_.ranks));
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) ranks_.emplace_back(pipeline, rank);
  }

  // Returns false if the schedule is not in order.
  bool run() {
    for (std::int32_t rank = shape_.ranks; rank-- > 0;) runnable_.push_back(rank);
    while (!runnable_.empty()) {
      const std::int32_t rank = runnable_.back();
      runnable_.pop_back();
      machine& me = ranks_[core::at(rank)];
      while (!me.row.done()) {
        const outcome now = step(me, rank);
        if (now == outcome::disorder) return false;
        if (now == outcome::waits) break;
        me.row.pass();
      }
    }
    return true;
  }

  // Whether every stage has made everything, and each W once.
  bool complete() const {
    return std::all_of(streams_.begin(), streams_.end(), [&](const stream& s) {
      const bool forward = static_cast<std::size_t>(&s - streams_.data()) < stages_;
      return s.result == shape_.units() && (forward || s.weights == shape_.units());
    });
  }

  std::vector<stuck_rank> stuck() const {
    std::vector<stuck_rank> found;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (!ranks_[rank].row.done())
        found.push_back({static_cast<std::int32_t>(rank), ranks_[rank].row.index()});
    return found;
  }
  std::vector<rank_times> times() const {
    std::vector<rank_times> all;
    for (const machine& m : ranks_) {
      all.push_back(m.times);
      all.back().last = m.clock;
    }
    return all;
  }

 private:
  static constexpr std::size_t first_room = 8;
  enum class outcome { done, waits, disorder };

  struct machine {
    machine(const schedule& pipeline, std::int32_t rank) : row(pipeline, rank) {}
    std::int64_t clock = 0;
    std::int64_t held = 0;
    bool began = false;
    rank_times times;
    row_reader row;
  };

  stream& forward(std::int32_t stage) { return streams_[core::at(stage)]; }
  stream& gradient(std::int32_t stage) {
    return streams_[stages_ + static_cast<std::size_t>(stage)];
  }
  bool begins(std::int32_t stage) { return gradient(stage).last; }
  bool ends(std::int32_t stage) { return forward(stage).last; }

  // Whether a unit has arrived. The rank then waits for it until `begin`.
  outcome arrives(stream& from, std::int32_t rank, std::int32_t unit, std::int64_t& begin) {
    if (from.result <= unit) {
      from.waiting = rank;
      return outcome::waits;
    }
    if (from.taken != unit) return outcome::disorder;
    if constexpr (timed)
      begin = std::max(begin, from.times[static_cast<std::uint32_t>(unit) & from.mask]);
    return outcome::done;
  }
  outcome input(const action& a, std::int32_t rank, std::int64_t& begin) {
    const stream& own = forward(a.stage);
    if (own.result != a.microbatch || own.maker != rank) return outcome::disorder;
    if (begins(a.stage)) return outcome::done;
    return arrives(forward(a.stage - 1), rank, a.microbatch, begin);
  }
  outcome output_gradient(std::int32_t stage, std::int32_t unit, std::int32_t rank,
                          std::int64_t& begin) {
    const stream& own = gradient(stage);
    if (own.result != unit || own.maker != rank || forward(stage).result <= unit)
      return outcome::disorder;
    if (ends(stage)) return outcome::done;
    return arrives(gradient(stage + 1), rank, unit, begin);
  }

  void make(stream& to, std::int64_t end) {
    if (!to.last) {
      if constexpr (timed) arrive(to, to.crosses ? end + scale_.latency : end);
      if (to.waiting >= 0) runnable_.push_back(std::exchange(to.waiting, -1));
    }
    ++to.result;
  }
  void arrive(stream& at, std::int64_t time) {
    if (at.result - at.taken > static_cast<std::int32_t>(at.mask)) grow(at);
    at.times[static_cast<std::uint32_t>(at.result) & at.mask] = time;
  }
  void grow(stream& full) {
    const std::uint32_t room = 2 * (full.mask + 1);
    grown_.push_back(std::make_unique<std::int64_t[]>(room));
    std::int64_t* const times = grown_.back().get();
    for (std::int32_t unit = full.taken; unit < full.result; ++unit)
      times[static_cast<std::uint32_t>(unit) & (room - 1)] =
          full.times[static_cast<std::uint32_t>(unit) & full.mask];
    full.times = times;
    full.mask = room - 1;
  }

  outcome step(machine& me, std::int32_t rank) {
    const action& a = me.row.next();
    std::int64_t begin = me.clock, cost = 0;
    outcome now = outcome::done;
    switch (a.kind) {
      case VELO_ACTION_F:
        if ((now = input(a, rank, begin)) != outcome::done) return now;
        end_forward(me, a.stage, begin, begin + scale_.of_forward(a.stage));
        return now;
      case VELO_ACTION_I:
      case VELO_ACTION_B:
        if ((now = output_gradient(a.stage, a.microbatch, rank, begin)) != outcome::done)
          return now;
        cost = scale_.of_input(a.stage) + (a.kind == VELO_ACTION_B ? scale_.of_weight(a.stage) : 0);
        end_gradient(me, a.stage, begin, begin + cost);
        if (a.kind == VELO_ACTION_B) end_weight(me, a.stage, a.microbatch);
        return now;
      case VELO_ACTION_W:
        if (gradient(a.stage).result <= a.microbatch || gradient(a.stage).maker != rank)
          return outcome::disorder;
        end(me, begin, begin + scale_.of_weight(a.stage));
        end_weight(me, a.stage, a.microbatch);
        return now;
      case VELO_ACTION_FB:
        return pair(me, rank, a);
      default:
        return outcome::disorder;
    }
  }
  outcome pair(machine& me, std::int32_t rank, const action& a) {
    std::int64_t begin = me.clock;
    outcome now = input(a, rank, begin);
    if (now != outcome::done) return now;
    now = output_gradient(a.other_stage, a.other_microbatch, rank, begin);
    if (now != outcome::done) return now;
    const std::int64_t until = begin + scale_.of_fused(a.stage, a.other_stage);
    end_forward(me, a.stage, begin, until);
    me.times.work -= until - begin;  // once for both
    end_gradient(me, a.other_stage, begin, until);
    end_weight(me, a.other_stage, a.other_microbatch);
    return now;
  }
  void end_weight(machine& me, std::int32_t stage, std::int32_t unit) {
    if constexpr (timed) me.held -= scale_.full * scale_.share(stage);
    std::int32_t& weights = gradient(stage).weights;
    weights = weights == unit ? unit + 1 : -1;  // -1: out of order
  }

  void end(machine& me, std::int64_t begin, std::int64_t until) {
    if constexpr (!timed) return;
    if (!me.began) me.times.first = begin;
    me.began = true;
    me.clock = until;
    me.times.work += until - begin;
  }
  void hold(machine& me, std::int32_t stage) {
    if constexpr (!timed) return;
    me.held += scale_.full * scale_.share(stage);
    me.times.peak = std::max(me.times.peak, me.held);
  }
  void end_forward(machine& me, std::int32_t stage, std::int64_t begin, std::int64_t until) {
    end(me, begin, until);
    hold(me, stage);
    if (!begins(stage)) ++forward(stage - 1).taken;
    make(forward(stage), until);
  }
  void end_gradient(machine& me, std::int32_t stage, std::int64_t begin, std::int64_t until) {
    end(me, begin, until);
    if (!ends(stage)) ++gradient(stage + 1).taken;
    make(gradient(stage), until);
  }

  const shape shape_;
  const ticks& scale_;
  const std::size_t stages_;
  std::vector<stream> streams_;  // of outputs by stage, then of gradients
  std::vector<std::int64_t> room_;
  std::vector<std::unique_ptr<std::int64_t[]>> grown_;
  std::vector<machine> ranks_;
  std::vector<std::int32_t> runnable_;
};

constexpr kind_set ordinary = set_of(VELO_ACTION_F) | set_of(VELO_ACTION_I) |
                              set_of(VELO_ACTION_W) | set_of(VELO_ACTION_B) |
                              set_of(VELO_ACTION_FB);

}  // namespace

bool is_sound_in_order(const schedule& pipeline) {
  if (pipeline.has(~ordinary) || pipeline.sizes().splits > 1) return false;
  const ticks none;
  machines<false> all(pipeline, none);
  return all.run() && all.stuck().empty() && all.complete();
}

bool simulate_in_order(const schedule& pipeline, const ticks& scale, std::vector<stuck_rank>& stuck,
                       simulation& result) {
  if (pipeline.has(~ordinary) || scale.transfer != 0 || scale.pending != scale.full) return false;
  machines<true> all(pipeline, scale);
  if (!all.run()) return false;
  stuck = all.stuck();
  result = {scale, all.times()};
  return true;
}

}  // namespace velo::sched
