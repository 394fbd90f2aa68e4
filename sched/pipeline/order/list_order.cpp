// The simulation's events: a rank ends an action, or receives an input.
#include "sched/pipeline/order/list_order.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "core/index.hpp"

namespace velo::sched {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

class ranks {
 public:
  ranks(const policy& of, const shape& sizes, const ticks& costs, const placement& stages,
        std::int64_t room, std::int64_t limit, bool record)
      : policy_(of),
        sizes_(sizes),
        units_(sizes.units()),
        costs_(costs),
        room_(room),
        limit_(limit),
        record_(record),
        stages_(stages),
        rank_of_(sizes.stages),
        inputs_(static_cast<std::size_t>(sizes.cells()), never),
        gradients_(static_cast<std::size_t>(sizes.cells()), never),
        states_(sizes.ranks) {
    for (std::int32_t rank = 0; rank < sizes.ranks; ++rank) {
      for (const std::int32_t stage : stages[rank]) rank_of_[stage] = rank;
      std::vector<std::int64_t>& behind = states_[rank].behind;
      behind.assign(stages[rank].size(), 0);
      for (std::size_t c = behind.size(); c-- > 0;)
        behind[c] = costs.share(stages[rank][c]) + (c + 1 < behind.size() ? behind[c + 1] : 0);
      states_[rank].left = behind[0] * units_ * (costs.forward + costs.input + costs.weight);
      states_[rank].forwards.resize(stages[rank].size());
      states_[rank].backwards.resize(stages[rank].size());
      if (record)
        states_[rank].row.reserve(3 * stages[rank].size() * static_cast<std::size_t>(units_));
    }
    std::fill_n(inputs_.begin(), units_, 0);
  }

  ordered run() {
    events_.push({0, rank_of_[0]});
    while (!events_.empty()) {
      const auto [time, rank] = events_.top();
      events_.pop();
      if (time + states_[rank].left >= limit_) return {};
      if (time >= states_[rank].free) act(rank, time);
    }
    ordered result;
    result.done = true;
    for (state& s : states_) {
      result.makespan = std::max(result.makespan, s.free);
      result.rows.push_back(std::move(s.row));
    }
    return result;
  }

 private:
  using event = std::pair<std::int64_t, std::int32_t>;
  struct state {
    std::int64_t free = 0, held = 0;
    std::int64_t left = 0;                          // the duration of its remaining actions
    std::vector<std::int64_t> behind;               // shares of a chunk and of those behind it
    std::vector<std::int32_t> forwards, backwards;  // done, by chunk
    std::vector<std::pair<std::int32_t, std::int32_t>> waiting;  // stage and unit of W, from `next`
    std::size_t next = 0;
    std::vector<action> row;
  };
  struct choice {
    int priority = std::numeric_limits<int>::max();
    velo_action_kind kind = 0;
    std::int32_t chunk = 0;
  };

  std::int64_t cost(velo_action_kind kind, std::int32_t stage) const {
    return (kind == VELO_ACTION_F   ? costs_.forward
            : kind == VELO_ACTION_I ? costs_.input
                                    : costs_.weight) *
           costs_.share(stage);
  }
  int priority_of(velo_action_kind kind, std::int32_t chunk, std::int32_t chunks) const {
    const int of = kind == VELO_ACTION_I ? policy::input
                   : chunk == 0          ? policy::entering
                                         : policy::passing;
    const bool low_first = kind == VELO_ACTION_I && policy_.first_chunk_first;
    return policy_.priority[of] * 4096 + (low_first ? chunk : chunks - 1 - chunk);
  }

  void act(std::int32_t rank, std::int64_t now) {
    state& s = states_[rank];
    const auto chunks = static_cast<std::int32_t>(stages_[rank].size());
    choice best, coming;
    std::int64_t comes = never;
    int blocked = std::numeric_limits<int>::max();  // priority of the first forward that lacks room
    const auto consider = [&](velo_action_kind kind, std::int32_t chunk, std::int64_t there) {
      if (there == never) return;
      const int priority = priority_of(kind, chunk, chunks);
      if (there <= now && priority < best.priority) best = {priority, kind, chunk};
      if (there > now && priority < coming.priority) {
        coming = {priority, kind, chunk};
        comes = there;
      }
    };
    for (std::int32_t c = 0; c < chunks; ++c) {
      const std::size_t cell = static_cast<std::size_t>(stages_[rank][c]) * units_;
      if (s.backwards[c] < s.forwards[c])
        consider(VELO_ACTION_I, c, gradients_[cell + s.backwards[c]]);
      if (s.forwards[c] == units_) continue;
      const std::int64_t there = inputs_[cell + s.forwards[c]];
      if (s.held + s.behind[c] <= room_)
        consider(VELO_ACTION_F, c, there);
      else if (there <= now)
        blocked = std::min(blocked, priority_of(VELO_ACTION_F, c, chunks));
    }
    if (s.next < s.waiting.size()) {
      const int priority = std::min(policy_.priority[policy::weight] * 4096, blocked);
      if (priority < best.priority) best = {priority, VELO_ACTION_W, 0};
    }
    if (best.kind == 0) return;
    const std::int32_t stage =
        best.kind == VELO_ACTION_W ? s.waiting[s.next].first : stages_[rank][best.chunk];
    const double most_wait = policy_.wait_share * static_cast<double>(cost(best.kind, stage));
    if (coming.priority < best.priority && static_cast<double>(comes - now) < most_wait) return;
    perform(rank, best, now);
  }

  void perform(std::int32_t rank, const choice& chosen, std::int64_t now) {
    state& s = states_[rank];
    const bool waited = chosen.kind == VELO_ACTION_W;
    const std::int32_t stage = waited ? s.waiting[s.next].first : stages_[rank][chosen.chunk];
    const std::int64_t end = s.free = now + cost(chosen.kind, stage);
    s.left -= end - now;
    events_.push({end, rank});
    if (waited) {
      const std::int32_t unit = s.waiting[s.next++].second;
      s.held -= costs_.share(stage);
      if (record_) s.row.push_back(make_action(VELO_ACTION_W, stage, unit));
      return;
    }
    std::int32_t unit = 0;
    if (chosen.kind == VELO_ACTION_F) {
      unit = s.forwards[chosen.chunk]++;
      s.held += costs_.share(stage);
      if (sizes_.ends_chain(stage))
        gradients_[core::at(stage) * units_ + unit] = end;
      else
        hand(inputs_, rank, stage + 1, unit, end);
    } else {
      unit = s.backwards[chosen.chunk]++;
      s.waiting.emplace_back(stage, unit);
      if (!sizes_.begins_chain(stage)) hand(gradients_, rank, stage - 1, unit, end);
    }
    if (record_) s.row.push_back(make_action(chosen.kind, stage, unit));
  }

  void hand(std::vector<std::int64_t>& to, std::int32_t rank, std::int32_t stage, std::int32_t unit,
            std::int64_t end) {
    const std::int32_t other = rank_of_[stage];
    const std::int64_t there = other == rank ? end : end + costs_.latency;
    to[core::at(stage) * units_ + unit] = there;
    if (other != rank && states_[other].free < there) events_.push({there, other});
  }

  const policy& policy_;
  const shape sizes_;
  const std::int32_t units_;
  const ticks& costs_;
  const std::int64_t room_, limit_;
  const bool record_;
  const placement& stages_;
  std::vector<std::int32_t> rank_of_;
  std::vector<std::int64_t> inputs_, gradients_;  // times at which they arrive, by stage and unit
  std::vector<state> states_;
  std::priority_queue<event, std::vector<event>, std::greater<event>> events_;
};

}  // namespace

ordered order_by(const policy& of, const shape& sizes, const ticks& costs, const placement& stages,
                 std::int64_t room, std::int64_t limit, bool record) {
  return ranks(of, sizes, costs, stages, room, limit, record).run();
}

}  // namespace velo::sched
