// One greedy pass over the rounds, in the orders that the header names.
#include "sched/parallel/context/adaptive/rounds.hpp"

#include <algorithm>
#include <numeric>

#include "comm/operation/terms.hpp"
#include "core/round_up.hpp"

namespace velo::sched {
namespace {

// How a pass chooses. The rule: first choices untested, returns counted in one round.
struct round_choice {
  bool is_rule, own_last, by_messages;
  std::uint64_t shuffle;  // 0 = none
};

// Units of a rank.
struct units {
  std::int64_t now = 0, in_gradient = 0;

  void add(const units& more) { now += more.now, in_gradient += more.in_gradient; }
};
constexpr units keys_come{2, 2}, keys_return{0, 2}, queries_come{1, 2}, queries_return{1, 1};

class round_pass {
 public:
  round_pass(const visibility& pairs, const round_choice& how)
      : how_(how),
        ranks_(pairs.parts()),
        open_(pairs),
        left_(pairs.pairs()),
        messages_(core::at(ranks_)),
        used_(core::at(ranks_)),
        returned_(core::at(ranks_)),
        before_(core::at(ranks_)),
        state_(core::at(ranks_)) {
    for (std::int64_t i = 0; i < ranks_; ++i)
      for (std::int64_t j = 0; j < ranks_; ++j)
        if (i != j && pairs.at(i, j)) ++messages_[core::at(i)], ++messages_[core::at(j)];
  }

  task_rounds run() {
    for (std::int64_t round = 0; left_ > 0; ++round) {
      done_.emplace_back();
      begin_round();
      const std::vector<std::int64_t> order = order_of(round);
      for (const std::int64_t rank : order) compute_row(rank, round);
      for (const std::int64_t rank : order) compute_column(rank);
      for (const std::int64_t rank : order)
        if (how_.own_last && !is_busy(rank) && open_.at(rank, rank)) take({rank, rank, rank});
    }
    return std::move(done_);
  }

 private:
  struct rank_state {
    bool is_busy, has_sent_queries;
  };
  bool is_busy(std::int64_t rank) const { return state_[core::at(rank)].is_busy; }

  // The returns of the round before are counted now, and in the next round again.
  void begin_round() {
    for (std::size_t r = 0; r < used_.size(); ++r) {
      const units first = returned_[r], second = before_[r];
      used_[r] = how_.is_rule ? first : units{std::max(first.now, second.now), second.in_gradient};
      before_[r] = first;
      returned_[r] = {};
      state_[r] = {};
    }
  }
  std::vector<std::int64_t> order_of(std::int64_t round) const {
    std::vector<std::int64_t> order(core::at(ranks_));
    std::iota(order.begin(), order.end(), 0);
    if (how_.by_messages)
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return messages_[core::at(a)] > messages_[core::at(b)];
      });
    for (std::int64_t i = ranks_ - 1; how_.shuffle != 0 && i > 0; --i) {
      const auto draw = static_cast<std::uint64_t>(round * ranks_ + i);
      const std::uint64_t at = comm::mixed(how_.shuffle + draw) % static_cast<std::uint64_t>(i + 1);
      std::swap(order[core::at(i)], order[at]);
    }
    return order;
  }

  // A task of the rank's own row. Of columns that fit the first, or the one with most messages.
  void compute_row(std::int64_t rank, std::int64_t round) {
    std::int64_t best = -1;
    for (std::int64_t i = 0; i < ranks_; ++i) {
      const bool first = i == 0;
      const std::int64_t column = first ? (rank + round) % ranks_ : (rank - i + ranks_) % ranks_;
      if (!open_.at(rank, column) || (how_.own_last && column == rank)) continue;
      const bool fits = column == rank || (first && how_.is_rule) ||
                        (has_room(rank, keys_come) && has_room(column, keys_come));
      if (fits && is_better(column, best)) best = column;
    }
    if (best >= 0) take({rank, best, rank});
  }
  // A task of the column of a rank that is still free.
  void compute_column(std::int64_t rank) {
    if (is_busy(rank)) return;
    std::int64_t best = -1;
    for (std::int64_t i = 1; i < ranks_; ++i) {
      const std::int64_t row = (rank + i) % ranks_;
      if (open_.at(row, rank) && !state_[core::at(row)].has_sent_queries &&
          has_room(rank, queries_come) && has_room(row, queries_come) && is_better(row, best))
        best = row;
    }
    if (best < 0) return;
    state_[core::at(best)].has_sent_queries = true;
    take({best, rank, rank});
  }
  bool has_room(std::int64_t rank, const units& more) const {
    const units& used = used_[core::at(rank)];
    return used.now + more.now <= most_units_forward &&
           (how_.is_rule || used.in_gradient + more.in_gradient <= most_units_gradient);
  }
  bool is_better(std::int64_t other, std::int64_t than) const {
    if (than < 0) return true;
    return (how_.by_messages || how_.shuffle != 0) &&
           messages_[core::at(other)] > messages_[core::at(than)];
  }

  void take(const round_task& one) {
    done_.back().push_back(one);
    open_.clear(one.row, one.column), --left_;
    state_[core::at(one.rank)].is_busy = true;
    if (one.row == one.column) return;
    for (const std::int64_t end : {one.row, one.column}) {
      used_[core::at(end)].add(one.moves_keys() ? keys_come : queries_come);
      returned_[core::at(end)].add(one.moves_keys() ? keys_return : queries_return);
      --messages_[core::at(end)];
    }
  }

  const round_choice how_;
  const std::int64_t ranks_;
  visibility open_;
  std::int64_t left_;
  std::vector<std::int64_t> messages_;  // of tasks that are left, by rank
  std::vector<units> used_, returned_, before_;
  std::vector<rank_state> state_;
  task_rounds done_;
};

}  // namespace

task_rounds rounds_of(const visibility& pairs) {
  constexpr std::uint64_t shuffles = 16;
  constexpr std::int64_t shuffled_ranks = 64;
  const auto least = static_cast<std::size_t>(core::ceil_div(pairs.pairs(), pairs.parts()));
  task_rounds best;
  const auto attempt = [&](const round_choice& how) {
    if (!best.empty() && best.size() == least) return;
    task_rounds made = round_pass(pairs, how).run();
    if (best.empty() || made.size() < best.size()) best = std::move(made);
  };
  attempt({false, false, false, 0});
  attempt({false, true, false, 0});
  attempt({false, true, true, 0});
  for (std::uint64_t i = 1; i <= shuffles && pairs.parts() <= shuffled_ranks; ++i)
    attempt({false, true, false, i << 32});
  return best;
}

std::int64_t rounds_of_rule(const visibility& pairs) {
  return static_cast<std::int64_t>(round_pass(pairs, {true, false, false, 0}).run().size());
}

}  // namespace velo::sched
