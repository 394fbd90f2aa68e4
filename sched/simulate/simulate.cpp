// Runs the ranks. A mark is the time at which something made by a stage for a unit is available:
// the output of its forward, or the gradient of its input.
#include "sched/simulate/simulate.hpp"

#include <algorithm>

#include "sched/simulate/in_order.hpp"

namespace velo::sched {
namespace {

constexpr std::int64_t not_there = -1;

class machines {
 public:
  machines(const schedule& pipeline, const ticks& scale, spans* record)
      : pipeline_(pipeline),
        shape_(pipeline.sizes()),
        units_(shape_.units()),
        scale_(scale),
        held_(pipeline, scale),
        record_(record) {
    marks_.assign(static_cast<std::size_t>(2 * shape_.cells()), not_there);
    if (pipeline.has(set_of(VELO_ACTION_RELOAD)))
      back_.assign(static_cast<std::size_t>(shape_.cells()), 0);
    if (pipeline.has(set_of(VELO_ACTION_UNSHARD) | set_of(VELO_ACTION_REDUCE_GRAD)))
      collected_.assign(static_cast<std::size_t>(shape_.stages), 0);
    ranks_.reserve(shape_.ranks);
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) ranks_.emplace_back(pipeline, rank);
    if (record_ == nullptr) return;
    record_->assign(shape_.ranks, {});
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank)
      (*record_)[rank].reserve(static_cast<std::size_t>(pipeline.length(rank)));
  }

  void run() {
    for (std::int32_t rank = shape_.ranks; rank-- > 0;) runnable_.push_back(rank);
    while (!runnable_.empty()) {
      const std::int32_t rank = runnable_.back();
      runnable_.pop_back();
      while (!ranks_[rank].row.done() && step(rank)) {
      }
    }
  }

  std::vector<stuck_rank> stuck() {
    std::vector<stuck_rank> found;
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank)
      if (!ranks_[rank].row.done()) found.push_back({rank, ranks_[rank].row.index()});
    return found;
  }

  std::vector<rank_times> times() {
    std::vector<rank_times> all;
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
      held_.finish(rank);
      all.push_back(ranks_[rank].times);
      all.back().peak = held_.of(rank).peak;
      all.back().host_peak = held_.of(rank).host_peak;
    }
    return all;
  }

 private:
  // The time from which a link between two ranks is free.
  struct link {
    std::int32_t to;
    std::int64_t free;
  };
  struct machine {
    machine(const schedule& pipeline, std::int32_t rank) : row(pipeline, rank) {}
    row_reader row;
    std::int64_t clock = 0;
    std::int64_t waits_for = not_there;        // a mark
    std::int64_t copies = 0, collectives = 0;  // until when these are busy
    bool began = false;
    rank_times times;
    std::vector<link> links;
  };

  std::int64_t cell(std::int32_t stage, std::int32_t unit) const {
    return std::int64_t{stage} * units_ + unit;
  }
  std::int64_t forward_mark(std::int32_t stage, std::int32_t unit) const {
    return cell(stage, unit);
  }
  std::int64_t gradient_mark(std::int32_t stage, std::int32_t unit) const {
    return shape_.cells() + cell(stage, unit);
  }

  // Each moves `begin` to the time at which its input is available, or makes the rank wait.
  bool await(machine& me, std::int64_t mark, std::int64_t& begin) {
    if (marks_[mark] == not_there) {
      me.waits_for = mark;
      return false;
    }
    begin = std::max(begin, marks_[mark]);
    return true;
  }
  bool await_input(machine& me, std::int32_t stage, std::int32_t unit, std::int64_t& begin) {
    return shape_.begins_chain(stage) || await(me, forward_mark(stage - 1, unit), begin);
  }
  bool await_gradient(machine& me, std::int32_t stage, std::int32_t unit, std::int64_t& begin) {
    std::int64_t own = 0;
    return await(me, forward_mark(stage, unit), own) &&
           (shape_.ends_chain(stage) || await(me, gradient_mark(stage + 1, unit), begin));
  }
  // The time at which a stage's own data is available for a unit: reloaded activations, parameters.
  std::int64_t own_things(std::int32_t stage, std::int32_t unit) const {
    std::int64_t there = 0;
    if (!back_.empty() && unit >= 0) there = back_[cell(stage, unit)];
    if (!collected_.empty()) there = std::max(there, collected_[stage]);
    return there;
  }

  // Sets a mark. consumer: the stage that needs it.
  void set(std::int64_t mark, std::int32_t rank, std::int32_t consumer, std::int64_t end) {
    const std::int32_t to = consumer < 0 ? rank : pipeline_.rank_of(consumer);
    marks_[mark] = to == rank ? end : arrival(rank, to, end) + scale_.latency;
    if (to == rank || to < 0 || ranks_[to].waits_for != mark) return;
    ranks_[to].waits_for = not_there;
    runnable_.push_back(to);
  }
  std::int64_t arrival(std::int32_t from, std::int32_t to, std::int64_t end) {
    if (scale_.transfer == 0) return end;
    std::vector<link>& links = ranks_[from].links;
    auto at = std::find_if(links.begin(), links.end(), [&](const link& w) { return w.to == to; });
    if (at == links.end()) at = links.insert(at, {to, 0});
    return at->free = std::max(at->free, end) + scale_.transfer;
  }
  void end_forward(std::int32_t rank, std::int32_t stage, std::int32_t unit, std::int64_t end) {
    set(forward_mark(stage, unit), rank, shape_.ends_chain(stage) ? -1 : stage + 1, end);
  }
  void end_gradient(std::int32_t rank, std::int32_t stage, std::int32_t unit, std::int64_t end) {
    set(gradient_mark(stage, unit), rank, shape_.begins_chain(stage) ? -1 : stage - 1, end);
  }

  // Runs the rank's next action; false if it has to wait.
  bool step(std::int32_t rank) {
    machine& me = ranks_[rank];
    const action a = me.row.next();
    std::int64_t begin = me.clock, cost = 0;
    switch (a.kind) {
      case VELO_ACTION_F:
        if (!await_input(me, a.stage, a.microbatch, begin)) return false;
        cost = scale_.of_forward(a.stage);
        break;
      case VELO_ACTION_I:
      case VELO_ACTION_B:
        if (!await_gradient(me, a.stage, a.microbatch, begin)) return false;
        cost = scale_.of_input(a.stage) + (a.kind == VELO_ACTION_B ? scale_.of_weight(a.stage) : 0);
        break;
      case VELO_ACTION_W: {
        std::int64_t own = 0;
        if (!await(me, gradient_mark(a.stage, a.microbatch), own)) return false;
        cost = scale_.of_weight(a.stage);
        break;
      }
      case VELO_ACTION_FB:
        if (!await_input(me, a.stage, a.microbatch, begin) ||
            !await_gradient(me, a.other_stage, a.other_microbatch, begin))
          return false;
        begin = std::max(begin, own_things(a.other_stage, a.other_microbatch));
        cost = scale_.of_fused(a.stage, a.other_stage);
        break;
      default:
        return step_beside(rank, a);
    }
    begin = std::max(begin, own_things(a.stage, a.microbatch));
    end(rank, a, begin, begin + cost);
    return true;
  }

  // Runs actions that are neither forward nor backward.
  bool step_beside(std::int32_t rank, const action& a) {
    machine& me = ranks_[rank];
    const std::int64_t share = scale_.share(a.stage);
    std::int64_t begin = me.clock, cost = 0;
    switch (a.kind) {
      case VELO_ACTION_RECOMPUTE: {
        std::int64_t own = 0;
        if (!await(me, forward_mark(a.stage, a.microbatch), own)) return false;
        begin = std::max(begin, own_things(a.stage, a.microbatch));
        cost = scale_.recompute * share;
        break;
      }
      case VELO_ACTION_OPTIMIZER:
        begin = std::max(begin, own_things(a.stage, -1));
        cost = scale_.optimizer * share;
        break;
      case VELO_ACTION_OFFLOAD:
      case VELO_ACTION_RELOAD:
        begin = std::max(begin, me.copies);
        cost = (a.kind == VELO_ACTION_OFFLOAD ? scale_.offload : scale_.reload) * share;
        me.copies = begin + cost;
        if (a.kind == VELO_ACTION_RELOAD) back_[cell(a.stage, a.microbatch)] = begin + cost;
        break;
      case VELO_ACTION_UNSHARD:
      case VELO_ACTION_REDUCE_GRAD:
        begin = std::max(begin, me.collectives);
        cost = (a.kind == VELO_ACTION_UNSHARD ? scale_.gather : scale_.reduce) * share;
        me.collectives = collected_[a.stage] = begin + cost;
        break;
      default:  // messages follow from what is computed
        break;
    }
    end(rank, a, begin, begin + cost);
    return true;
  }

  void end(std::int32_t rank, const action& a, std::int64_t begin, std::int64_t end) {
    machine& me = ranks_[rank];
    if (record_ != nullptr) (*record_)[rank].push_back({begin, end});
    me.row.pass();
    held_.add(rank, a, {begin, end});
    if (!computes(a.kind)) {
      me.times.last = std::max(me.times.last, end == begin ? 0 : end);
      return;
    }
    if (!me.began) me.times.first = begin;
    me.began = true;
    me.clock = end;
    me.times.last = std::max(me.times.last, end);
    me.times.work += end - begin;
    if (has_forward(a.kind)) end_forward(rank, a.stage, a.microbatch, end);
    if (a.kind == VELO_ACTION_I || a.kind == VELO_ACTION_B)
      end_gradient(rank, a.stage, a.microbatch, end);
    if (a.kind == VELO_ACTION_FB) end_gradient(rank, a.other_stage, a.other_microbatch, end);
  }

  const schedule& pipeline_;
  const shape shape_;
  const std::int32_t units_;
  const ticks& scale_;
  holdings held_;
  spans* record_;
  std::vector<std::int64_t> marks_;
  std::vector<std::int64_t> back_;       // when copies from the host end, by stage and unit
  std::vector<std::int64_t> collected_;  // when a stage's last collective ends
  std::vector<machine> ranks_;
  std::vector<std::int32_t> runnable_;
};

}  // namespace

std::int64_t simulation::makespan() const {
  std::int64_t last = 0;
  for (const rank_times& r : ranks) last = std::max(last, r.last);
  return last;
}

std::int64_t simulation::work() const {
  std::int64_t least = ranks.empty() ? 0 : ranks[0].work;
  for (const rank_times& r : ranks) least = std::min(least, r.work);
  return least;
}

std::int64_t simulation::sigma() const {
  std::int64_t most = 0;
  for (const rank_times& r : ranks) most = std::max(most, r.last - r.first - r.work);
  return most;
}

simulation simulate(const schedule& pipeline, const ticks& scale, std::vector<stuck_rank>& stuck,
                    spans* record) {
  simulation result;
  if (record == nullptr && simulate_in_order(pipeline, scale, stuck, result)) return result;
  machines all(pipeline, scale, record);
  all.run();
  stuck = all.stuck();
  return {scale, all.times()};
}

}  // namespace velo::sched
