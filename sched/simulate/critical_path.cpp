// Finding the makers of messages, then walking back from the last action.
#include "sched/simulate/critical_path.hpp"

#include <algorithm>
#include <iterator>

#include "core/failure.hpp"
#include "core/index.hpp"

namespace velo::sched {
namespace {

bool is_collective(velo_action_kind kind) {
  return kind == VELO_ACTION_UNSHARD || kind == VELO_ACTION_REDUCE_GRAD;
}

class tracer {
 public:
  tracer(const timeline& of, const spans& when)
      : of_(of),
        pipeline_(*of.of),
        shape_(pipeline_.sizes()),
        when_(when),
        copies_(static_cast<std::size_t>(shape_.ranks)),
        collectives_(copies_.size()),
        of_stage_(static_cast<std::size_t>(shape_.stages)) {
    makers_.resize(static_cast<std::size_t>(2 * shape_.cells()));
    if (pipeline_.has(set_of(VELO_ACTION_RELOAD)))
      reloads_.assign(static_cast<std::size_t>(shape_.cells()), none);
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) note_row(rank);
  }

  std::vector<path_step> run() const {
    std::vector<path_step> path;
    action_id at = last();
    while (at.index != none) {
      path_step step{};
      pipeline_.read(at.rank, at.index, 1, &step.done);
      step.rank = at.rank;
      step.index = at.index;
      step.when = span_of(at);
      const source before = before_of(at, step.done);
      step.cause = before.cause;
      const std::int64_t from = before.by.index == none ? 0 : span_of(before.by).end;
      step.wait = step.when.begin - from;
      path.push_back(step);
      at = before.by;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  static constexpr std::int64_t none = -1;
  struct action_id {
    std::int32_t rank = 0;
    std::int64_t index = none;
  };
  // Something that an action may have waited for, available from `ready` on.
  struct source {
    action_id by;
    std::int64_t ready = none;
    velo_path_cause cause = VELO_PATH_START;
  };
  // A run of back-to-back messages from one rank to another; `first` made the first of them.
  struct burst {
    std::int32_t to;
    std::int64_t free;
    action_id first;
  };

  const span& span_of(const action_id& at) const {
    return when_[core::at(at.rank)][core::at(at.index)];
  }
  std::size_t cell(std::int32_t stage, std::int32_t unit) const {
    return static_cast<std::size_t>(std::int64_t{stage} * shape_.units() + unit);
  }
  std::size_t gradient_cell(std::int32_t stage, std::int32_t unit) const {
    return static_cast<std::size_t>(shape_.cells()) + cell(stage, unit);
  }

  void note_row(std::int32_t rank) {
    std::vector<burst> bursts;
    std::int64_t index = 0;
    for (row_reader row(pipeline_, rank); !row.done(); row.pass(), ++index) {
      const action& a = row.next();
      const action_id here{rank, index};
      if (copies(a.kind)) copies_[core::at(rank)].push_back(index);
      if (a.kind == VELO_ACTION_RELOAD) reloads_[cell(a.stage, a.microbatch)] = index;
      if (is_collective(a.kind)) {
        collectives_[core::at(rank)].push_back(index);
        of_stage_[core::at(a.stage)].push_back(index);
      }
      if (has_forward(a.kind) && !shape_.ends_chain(a.stage))
        send(bursts, here, cell(a.stage, a.microbatch), a.stage + 1);
      const bool both = a.kind == VELO_ACTION_FB;
      const std::int32_t stage = both ? a.other_stage : a.stage;
      if (has_gradient(a.kind) && !shape_.begins_chain(stage))
        send(bursts, here, gradient_cell(stage, both ? a.other_microbatch : a.microbatch),
             stage - 1);
    }
  }

  void send(std::vector<burst>& bursts, const action_id& by, std::size_t mark,
            std::int32_t consumer) {
    const std::int32_t to = pipeline_.rank_of(consumer);
    const std::int64_t end = span_of(by).end;
    source& result = makers_[mark];
    result = {by, end, VELO_PATH_RANK};
    if (to == by.rank) return;
    result.cause = VELO_PATH_MESSAGE;
    if (of_.times.scale.transfer != 0) {
      auto at =
          std::find_if(bursts.begin(), bursts.end(), [&](const burst& w) { return w.to == to; });
      if (at == bursts.end()) at = bursts.insert(at, {to, none, by});
      if (at->free < end) at->first = by;
      result.by = at->first;
      result.ready = at->free = std::max(at->free, end) + of_.times.scale.transfer;
    }
    result.ready += of_.times.scale.latency;
  }

  action_id last() const {
    action_id found;
    std::int64_t end = none;
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
      std::int64_t index = 0;
      for (row_reader row(pipeline_, rank); !row.done(); row.pass(), ++index) {
        const span& its = span_of({rank, index});
        if (its.end <= end || (!computes(row.next().kind) && its.begin == its.end)) continue;
        if (of_.measured != nullptr && !computes(row.next().kind)) continue;
        end = its.end;
        found = {rank, index};
      }
    }
    return found;
  }

  // The last action before another in its row that computes.
  action_id computed_before(const action_id& at) const {
    for (std::int64_t index = at.index; index-- > 0;) {
      action a;
      pipeline_.read(at.rank, index, 1, &a);
      if (computes(a.kind)) return {at.rank, index};
    }
    return {at.rank, none};
  }
  // The last of some actions of a row before another.
  static action_id last_before(const action_id& at, const std::vector<std::int64_t>& some) {
    const auto behind = std::lower_bound(some.begin(), some.end(), at.index);
    return {at.rank, behind == some.begin() ? none : *std::prev(behind)};
  }

  source before_of(const action_id& at, const action& a) const {
    source latest;
    const std::int64_t begin = span_of(at).begin;
    const auto consider = [&](const source& one) {
      if (one.by.index == none || one.ready > begin || one.ready <= latest.ready) return;
      if (one.by.rank == at.rank && one.by.index >= at.index) return;
      latest = one;
    };
    const auto after = [&](const action_id& by, velo_path_cause cause) {
      if (by.index != none) consider({by, span_of(by).end, cause});
    };
    const auto rank = static_cast<std::size_t>(at.rank);
    after(computed_before(at), VELO_PATH_RANK);
    if (copies(a.kind)) after(last_before(at, copies_[rank]), VELO_PATH_COPY);
    if (is_collective(a.kind)) after(last_before(at, collectives_[rank]), VELO_PATH_COLLECTIVE);
    if (!computes(a.kind)) return latest;
    own_things(at, a.stage, a.microbatch, after);
    if (has_forward(a.kind) && !shape_.begins_chain(a.stage))
      consider(makers_[cell(a.stage - 1, a.microbatch)]);
    if (!has_gradient(a.kind)) return latest;
    const bool both = a.kind == VELO_ACTION_FB;
    const std::int32_t stage = both ? a.other_stage : a.stage;
    const std::int32_t unit = both ? a.other_microbatch : a.microbatch;
    if (both) own_things(at, stage, unit, after);
    if (!shape_.ends_chain(stage)) consider(makers_[gradient_cell(stage + 1, unit)]);
    return latest;
  }

  // Adds a stage's copies back and its last collective.
  template <class After>
  void own_things(const action_id& at, std::int32_t stage, std::int32_t unit, After&& after) const {
    if (!reloads_.empty() && unit >= 0)
      after({at.rank, reloads_[cell(stage, unit)]}, VELO_PATH_COPY);
    after(last_before(at, of_stage_[core::at(stage)]), VELO_PATH_COLLECTIVE);
  }

  const timeline& of_;
  const schedule& pipeline_;
  const shape shape_;
  const spans& when_;
  std::vector<source> makers_;         // of outputs, then of gradients, by stage and unit
  std::vector<std::int64_t> reloads_;  // the last RELOAD's index, by stage and unit
  std::vector<std::vector<std::int64_t>> copies_, collectives_;  // indices, by rank
  std::vector<std::vector<std::int64_t>> of_stage_;              // of collectives, by stage
};

}  // namespace

std::vector<path_step> critical_path(const timeline& of, const spans& when) {
  return tracer(of, when).run();
}

std::vector<path_step> critical_path(const timeline& of) {
  require_listed(of);
  return critical_path(of, *spans_of(of));
}

}  // namespace velo::sched
