// Taking times from a simulation, and merging every row with its messages.
#include "sched/simulate/lower.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/failure.hpp"
#include "sched/simulate/simulate.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;

// A send or a receive of a rank. id: the message's number, the same on both sides.
struct message_end {
  std::int64_t time;
  std::int64_t id;
  action step;
};

class lowering {
 public:
  lowering(const schedule& pipeline, bool sends_first)
      : pipeline_(pipeline),
        shape_(pipeline.sizes()),
        sends_first_(sends_first),
        ends_(static_cast<std::size_t>(shape_.ranks)) {}

  std::vector<row> run() {
    time_actions();
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) find_messages(rank);
    std::vector<row> rows;
    rows.reserve(ends_.size());
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) rows.emplace_back(merge(rank));
    return rows;
  }

 private:
  void time_actions() {
    ticks same;  // all actions of a stage take equally long
    same.forward = same.input = same.weight = 1;
    same.fused = 3;
    same.recompute = 1;
    std::vector<stuck_rank> stuck;
    simulate(pipeline_, same, stuck, &spans_);
    if (!stuck.empty())
      fail(VELO_ERR_STATE, "schedule", "one in which no rank waits for ever",
           core::concat("rank ", stuck[0].rank, " at its action ", stuck[0].index));
  }

  // Finds the messages that a rank's actions cause, on both sides.
  void find_messages(std::int32_t rank) {
    for (row_reader row(pipeline_, rank); !row.done(); row.pass()) {
      const action& a = row.next();
      const std::int64_t end = spans_[rank][row.index()].end;
      if (has_forward(a.kind) && !shape_.ends_chain(a.stage))
        add(rank, end, VELO_ACTION_SEND_F, a.stage, a.stage + 1, a.microbatch);
      const bool both = a.kind == VELO_ACTION_FB;
      const std::int32_t stage = both ? a.other_stage : a.stage;
      const std::int32_t unit = both ? a.other_microbatch : a.microbatch;
      if (has_gradient(a.kind) && !shape_.begins_chain(stage))
        add(rank, end, VELO_ACTION_SEND_B, stage, stage - 1, unit);
    }
  }
  void add(std::int32_t rank, std::int64_t time, velo_action_kind send, std::int32_t stage,
           std::int32_t to, std::int32_t unit) {
    const std::int32_t receiver = pipeline_.rank_of(to);
    if (receiver == rank || receiver < 0) return;
    const bool forward = send == VELO_ACTION_SEND_F;
    const std::int64_t id = (std::int64_t{stage} * 2 + (forward ? 0 : 1)) * shape_.units() + unit;
    ends_[rank].push_back({time, id, make_action(send, stage, unit)});
    ends_[receiver].push_back(
        {time, id, make_action(forward ? VELO_ACTION_RECV_F : VELO_ACTION_RECV_B, to, unit)});
  }

  std::vector<action> merge(std::int32_t rank) {
    std::vector<message_end>& messages = ends_[rank];
    std::sort(messages.begin(), messages.end(), [](const message_end& a, const message_end& b) {
      return std::tie(a.time, a.id) < std::tie(b.time, b.id);
    });
    std::vector<action> all;
    all.reserve(static_cast<std::size_t>(pipeline_.length(rank)) + messages.size());
    auto next = messages.begin();
    for (row_reader row(pipeline_, rank); !row.done(); row.pass()) {
      const action& a = row.next();
      if (communicates(a.kind)) continue;
      const auto first = next;
      while (next != messages.end() && next->time <= spans_[rank][row.index()].begin) ++next;
      append(first, next, all);
      all.push_back(a);
    }
    append(next, messages.end(), all);
    return all;
  }
  using ends = std::vector<message_end>::iterator;
  void append(ends first, ends last, std::vector<action>& to) const {
    if (sends_first_)
      std::stable_partition(first, last,
                            [](const message_end& one) { return is_send(one.step.kind); });
    for (; first != last; ++first) to.push_back(first->step);
  }

  const schedule& pipeline_;
  const shape shape_;
  const bool sends_first_;
  spans spans_;
  std::vector<std::vector<message_end>> ends_;  // by rank
};

}  // namespace

schedule lower(const schedule& pipeline, bool sends_first) {
  if (pipeline.actions() > most_listed)
    fail(VELO_ERR_ARGUMENT, "schedule", core::concat("at most ", most_listed, " actions"),
         core::number(pipeline.actions()));
  std::vector<row> rows = lowering(pipeline, sends_first).run();
  std::vector<std::vector<std::int32_t>> stages;
  for (std::int32_t rank = 0; rank < pipeline.sizes().ranks; ++rank)
    stages.push_back(pipeline.stages_of(rank));
  schedule result(pipeline.sizes(), std::move(stages), std::move(rows));
  result.set_layers(pipeline.shared_layers());
  return result;
}

}  // namespace velo::sched
