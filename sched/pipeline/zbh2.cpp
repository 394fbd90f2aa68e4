// ZB-H2 and its variants: for any costs and any cap, with separate W and as many warm-up forwards
// as the cap allows.
//
// The zero-bubble greedy, by trial: ranks are simulated with their costs, backward by backward.
// First come forwards, as many on each rank as fit into the wait for the first gradient and into
// the cap. Then each micro-batch has a forward and an I, each preceded by the W that fit into its
// wait or that make room. Three choices that depend on costs are tried both ways; the order with
// the least longest rank span wins. With room for 2P - 1 micro-batches and equal costs no rank
// idles between its first and last action. O(8 P M).
#include <algorithm>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {
namespace {

struct choices {
  bool wait_before_first;  // a forward ahead may make the first backward wait
  bool backward_first;     // a forward may be omitted if the next rank is two behind
  bool fill_always;        // W before a waiting action even if its wait is not the longest
};

class attempt {
 public:
  attempt(const request& wanted, const ticks& costs, std::int32_t room, const choices& how)
      : ranks_(wanted.ranks), units_(wanted.microbatches), room_(room), how_(how), costs_(costs) {
    state_.resize(ranks_);
    for (rank_state& r : state_) {
      r.ends_f.reserve(units_);
      r.ends_i.reserve(units_);
      r.order.reserve(3 * std::size_t(units_));
    }
  }

  // Returns false if the room does not suffice.
  bool run() {
    first_wave();
    for (std::int32_t unit = 1; unit < units_; ++unit) {
      if (!forwards() || !backwards(unit)) return false;
    }
    for (std::int32_t rank = 0; rank < ranks_; ++rank)
      while (state_[rank].weights < units_) put(rank, VELO_ACTION_W);
    return true;
  }

  std::int64_t longest_span() const {
    std::int64_t longest = 0;
    for (const rank_state& r : state_) longest = std::max(longest, r.clock - r.begin);
    return longest;
  }
  std::vector<row> rows() && { return orders_of(state_); }

 private:
  struct rank_state {
    std::int32_t weights = 0, held = 0;
    std::int64_t clock = 0, begin = 0, bubble = 0;
    std::vector<std::int64_t> ends_f, ends_i;
    std::vector<action> order;
    std::int32_t forwards() const { return static_cast<std::int32_t>(ends_f.size()); }
    std::int32_t inputs() const { return static_cast<std::int32_t>(ends_i.size()); }
  };

  std::int64_t input_of(std::int32_t rank, std::int32_t unit) const {
    return rank == 0 ? 0 : state_[rank - 1].ends_f[unit] + costs_.latency;
  }
  std::int64_t gradient_of(std::int32_t rank, std::int32_t unit) const {
    return rank == ranks_ - 1 ? 0 : state_[rank + 1].ends_i[unit] + costs_.latency;
  }

  std::int64_t weight(std::int32_t rank) const { return costs_.weight * costs_.share(rank); }

  void put(std::int32_t rank, velo_action_kind kind) {
    rank_state& r = state_[rank];
    std::int64_t begin = r.clock;
    if (kind == VELO_ACTION_W) {
      r.clock += weight(rank);
      --r.held;
      r.order.push_back(make_action(kind, rank, r.weights++));
      return;
    }
    const bool forward = kind == VELO_ACTION_F;
    const std::int32_t unit = forward ? r.forwards() : r.inputs();
    begin = std::max(begin, forward ? input_of(rank, unit) : gradient_of(rank, unit));
    if (r.forwards() > 0)
      longest_bubble_ = std::max(longest_bubble_, r.bubble += begin - r.clock);
    else
      r.begin = begin;
    r.clock = begin + (forward ? costs_.forward : costs_.input) * costs_.share(rank);
    (forward ? r.ends_f : r.ends_i).push_back(r.clock);
    if (forward) ++r.held;
    r.order.push_back(make_action(kind, rank, unit));
  }

  // The first forward, the forwards that fit after it, and the first backward.
  void first_wave() {
    for (std::int32_t rank = 0; rank < ranks_; ++rank) put(rank, VELO_ACTION_F);
    std::vector<std::int32_t> ahead(ranks_, 0);
    std::int64_t gradient = state_[ranks_ - 1].clock + costs_.input * costs_.share(ranks_ - 1);
    for (std::int32_t rank = ranks_ - 2; rank >= 0; --rank) {
      const rank_state& r = state_[rank];
      const std::int64_t wait = gradient + costs_.latency;
      const std::int64_t forward = costs_.forward * costs_.share(rank);
      std::int64_t clock = r.clock;
      while (1 + ahead[rank] < units_ && r.held + ahead[rank] < room_) {
        if (how_.wait_before_first ? clock + forward > wait : clock >= wait) break;
        clock += forward;
        ++ahead[rank];
      }
      gradient = std::max(clock, wait) + costs_.input * costs_.share(rank);
    }
    for (std::int32_t rank = 1; rank < ranks_; ++rank)
      while (ahead[rank] > 0 && ahead[rank] >= ahead[rank - 1] && 1 + ahead[rank] < units_)
        --ahead[rank];
    for (std::int32_t rank = 0; rank < ranks_; ++rank)
      for (std::int32_t i = 0; i < ahead[rank]; ++i) put(rank, VELO_ACTION_F);
    for (std::int32_t rank = ranks_; rank-- > 0;) put(rank, VELO_ACTION_I);
  }

  // Whether a rank does its next forward before its next backward.
  bool wants_forward(std::int32_t rank) const {
    const rank_state& r = state_[rank];
    if (r.forwards() == units_) return false;
    if (!how_.backward_first || rank + 1 == ranks_) return true;
    const rank_state& behind = state_[rank + 1];
    if (r.forwards() < behind.forwards() + 2) return true;
    const std::int64_t gradient =
        behind.clock + (costs_.forward + costs_.input) * costs_.share(rank + 1) + costs_.latency;
    if (r.clock >= gradient) return false;
    const std::int64_t making_room =
        std::min(std::max(0, r.held + 1 - room_), r.inputs() - r.weights) * weight(rank);
    if (r.clock + costs_.forward * costs_.share(rank) + making_room <= gradient) return true;
    return gradient - r.clock > longest_bubble_ - r.bubble;
  }

  bool forwards() {
    std::vector<char> wanted(ranks_);
    for (std::int32_t rank = 0; rank < ranks_; ++rank) wanted[rank] = wants_forward(rank);
    for (std::int32_t rank = ranks_ - 2; rank >= 0; --rank)
      wanted[rank] = wanted[rank] && wanted[rank + 1];
    for (std::int32_t rank = 0; rank < ranks_; ++rank) {
      if (!wanted[rank]) continue;
      rank_state& r = state_[rank];
      while (r.held >= room_) {
        if (r.weights == r.inputs()) return false;
        put(rank, VELO_ACTION_W);
      }
      if (rank > 0) fill_wait(rank, input_of(rank, r.forwards()));
      put(rank, VELO_ACTION_F);
    }
    return true;
  }

  bool backwards(std::int32_t unit) {
    for (std::int32_t rank = ranks_; rank-- > 0;) {
      rank_state& r = state_[rank];
      if (r.forwards() <= unit) return false;
      if (rank + 1 < ranks_) fill_wait(rank, gradient_of(rank, unit));
      if (rank == 0 && r.forwards() == units_)
        while (r.weights < r.inputs()) put(rank, VELO_ACTION_W);
      put(rank, VELO_ACTION_I);
    }
    return true;
  }

  // Does the W that fit into the wait, and one more if the wait would be the longest.
  void fill_wait(std::int32_t rank, std::int64_t until) {
    rank_state& r = state_[rank];
    const auto pending = [&] { return r.weights < r.inputs(); };
    while (pending() && r.clock + weight(rank) <= until) put(rank, VELO_ACTION_W);
    if (!pending() || r.clock >= until) return;
    if (how_.fill_always || until - r.clock > longest_bubble_ - r.bubble) put(rank, VELO_ACTION_W);
  }

  const std::int32_t ranks_, units_, room_;
  const choices how_;
  const ticks& costs_;
  std::int64_t longest_bubble_ = 0;
  std::vector<rank_state> state_;
};

}  // namespace

schedule make_zbh2(const request& wanted) {
  const std::int32_t room = wanted.room_or(2 * wanted.ranks - 1);
  const shape sizes = shape_of(wanted);
  const ticks costs = ticks_of(wanted.costs, sizes, 3 * sizes.cells());
  std::vector<row> best;
  std::int64_t shortest = 0;
  for (const bool wait : {true, false}) {
    for (const bool backward : {true, false}) {
      for (const bool fill : {true, false}) {
        attempt one(wanted, costs, room, {wait, backward, fill});
        if (!one.run()) continue;
        const std::int64_t span = one.longest_span();
        if (!best.empty() && span >= shortest) continue;
        shortest = span;
        best = std::move(one).rows();
      }
    }
  }
  if (best.empty() || room < 1) refuse_cap(wanted, 1);  // one micro-batch at a time always works
  return {sizes, loop_placement(wanted.ranks, 1), std::move(best)};
}

}  // namespace velo::sched
