// ZB-V for any costs and any cap, by trial.
//
// Ranks are simulated with their costs. Forwards go down the ranks, up again, and as many more as
// fit. Then every rank in turn does a backward, of the chunk that is behind or whose gradient has
// arrived, and a forward. W are queued. A W precedes an action if it fits into the wait, if memory
// is short, or if the rank would idle longer than the rank that idles most. Filling waits before a
// forward and before chunk 0's backward is tried both ways. The search is repeated with each rank's
// idle time from the last result as long as that improves it. O(P M) for a trial.
#include <algorithm>
#include <array>
#include <utility>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {
namespace {

class attempt {
 public:
  attempt(const request& wanted, const ticks& costs, std::int32_t room, bool before_forward,
          bool before_backward, std::vector<std::int64_t> allowed)
      : ranks_(wanted.ranks),
        units_(wanted.microbatches),
        room_(room),
        before_forward_(before_forward),
        before_backward_(before_backward),
        costs_(costs),
        allowed_(std::move(allowed)),
        most_allowed_(*std::max_element(allowed_.begin(), allowed_.end())),
        state_(ranks_) {}

  // Returns false if the room does not suffice.
  bool run() {
    fill_down_and_up();
    level();
    for (std::int32_t round = 0; round < 2 * units_ && fits_; ++round) {
      backwards();
      forwards();
    }
    for (std::int32_t rank = 0; rank < ranks_; ++rank)
      while (pending(rank)) put_weight(rank);
    return fits_;
  }

  std::int64_t longest() const { return longest_bubble_; }
  std::vector<std::int64_t> bubbles() const {
    std::vector<std::int64_t> all;
    for (const rank_state& r : state_) all.push_back(r.bubble);
    return all;
  }
  std::vector<row> rows() && { return orders_of(state_); }

 private:
  struct rank_state {
    std::array<std::vector<std::int64_t>, 2> ends_f, ends_i;  // by chunk
    std::vector<action> waiting;                              // W, from `next` on
    std::size_t next = 0;
    std::int64_t clock = 0, bubble = 0;
    std::int32_t held = 0;
    std::vector<action> order;
    std::int32_t forwards(int chunk) const {
      return static_cast<std::int32_t>(ends_f[chunk].size());
    }
    std::int32_t backwards(int chunk) const {
      return static_cast<std::int32_t>(ends_i[chunk].size());
    }
  };

  std::int32_t stage_of(std::int32_t rank, int chunk) const {
    return chunk == 0 ? rank : 2 * ranks_ - 1 - rank;
  }

  // When the input of a rank's next forward or backward of a chunk arrives from another rank;
  // `unknown` if it is not made yet, `nothing` at the turning points.
  static constexpr std::int64_t unknown = -1, nothing = -2;
  std::int64_t made_at(const std::vector<std::int64_t>& ends, std::int32_t unit) const {
    return unit < static_cast<std::int32_t>(ends.size()) ? ends[unit] + costs_.latency : unknown;
  }
  std::int64_t input_at(std::int32_t rank, int chunk) const {
    const std::int32_t unit = state_[rank].forwards(chunk);
    if (chunk == 0) return rank == 0 ? nothing : made_at(state_[rank - 1].ends_f[0], unit);
    return rank == ranks_ - 1 ? nothing : made_at(state_[rank + 1].ends_f[1], unit);
  }
  std::int64_t gradient_at(std::int32_t rank, int chunk) const {
    const std::int32_t unit = state_[rank].backwards(chunk);
    if (chunk == 1) return rank == 0 ? nothing : made_at(state_[rank - 1].ends_i[1], unit);
    return rank == ranks_ - 1 ? nothing : made_at(state_[rank + 1].ends_i[0], unit);
  }

  bool pending(std::int32_t rank) const { return state_[rank].next < state_[rank].waiting.size(); }
  std::int64_t next_weight(const rank_state& r) const {
    return costs_.weight * costs_.share(r.waiting[r.next].stage);
  }
  void put_weight(std::int32_t rank) {
    rank_state& r = state_[rank];
    r.clock += next_weight(r);
    r.order.push_back(r.waiting[r.next++]);
    --r.held;
  }
  // Does W until a forward has room.
  void make_room(std::int32_t rank) {
    while (state_[rank].held >= room_ && pending(rank)) put_weight(rank);
    if (state_[rank].held >= room_) fits_ = false;
  }

  void begin_at(rank_state& r, std::int64_t there) {
    const std::int64_t begin = std::max(r.clock, there);
    if (r.forwards(0) > 0) longest_bubble_ = std::max(longest_bubble_, r.bubble += begin - r.clock);
    r.clock = begin;
  }
  void put_forward(std::int32_t rank, int chunk) {
    rank_state& r = state_[rank];
    const std::int32_t unit = r.forwards(chunk);
    const std::int64_t there = input_at(rank, chunk);
    const bool own = chunk == 0 || unit < r.forwards(0);
    if (unit >= units_ || there == unknown || !own || r.held >= room_) {
      fits_ = false;
      return;
    }
    begin_at(r, there);
    r.clock += costs_.forward * costs_.share(stage_of(rank, chunk));
    r.ends_f[chunk].push_back(r.clock);
    r.order.push_back(make_action(VELO_ACTION_F, stage_of(rank, chunk), unit));
    ++r.held;
  }
  void put_backward(std::int32_t rank, int chunk) {
    rank_state& r = state_[rank];
    const std::int32_t unit = r.backwards(chunk);
    const std::int64_t there = gradient_at(rank, chunk);
    const bool own = unit < r.forwards(chunk) && (chunk == 1 || unit < r.backwards(1));
    if (unit >= units_ || there == unknown || !own) {
      fits_ = false;
      return;
    }
    begin_at(r, there);
    const std::int32_t stage = stage_of(rank, chunk);
    r.clock += costs_.input * costs_.share(stage);
    r.ends_i[chunk].push_back(r.clock);
    r.order.push_back(make_action(VELO_ACTION_I, stage, unit));
    r.waiting.push_back(make_action(VELO_ACTION_W, stage, unit));
  }

  // The first micro-batch goes down the ranks and up again. On its way up each rank first fills its
  // wait with its own work and that of all ranks before it.
  void fill_down_and_up() {
    for (std::int32_t rank = 0; rank < ranks_; ++rank) put_forward(rank, 0);
    for (std::int32_t rank = ranks_; rank-- > 0;) {
      rank_state& r = state_[rank];
      while (rank + 1 < ranks_ && r.held + 2 + 2 * rank <= room_ && r.forwards(0) < units_ &&
             r.clock + costs_.forward * costs_.share(rank) <= input_at(rank, 1) && fits_)
        for (std::int32_t before = 0; before <= rank; ++before) put_forward(before, 0);
      put_forward(rank, 1);
    }
  }

  // Does forwards by alternating chunks until no rank has done fewer than the one before it.
  void level() {
    int chunk = 0;
    for (std::int32_t rank = 1; rank < ranks_; ++rank) {
      const auto behind = [&] {
        const rank_state &r = state_[rank], &before = state_[rank - 1];
        return r.forwards(0) + r.forwards(1) < before.forwards(0) + before.forwards(1) ||
               (r.forwards(1) <= before.forwards(1) && before.forwards(1) < units_);
      };
      for (; fits_ && behind(); chunk = 1 - chunk)
        for (std::int32_t other = ranks_; other-- > rank;)
          if (state_[other].forwards(chunk) < units_) put_forward(other, chunk);
    }
  }

  // Chunk 0 if it is behind and has its gradient, or if chunk 1 has none left.
  int chunk_of_backward(std::int32_t rank) const {
    const rank_state& r = state_[rank];
    if (r.backwards(0) >= r.backwards(1)) return 1;
    return gradient_at(rank, 0) != unknown || r.backwards(1) >= units_ ? 0 : 1;
  }

  void backwards() {
    std::vector<int> chunks(ranks_);
    for (std::int32_t rank = 0; rank < ranks_; ++rank) chunks[rank] = chunk_of_backward(rank);
    const auto put = [&](std::int32_t rank, int chunk) {
      if (chunks[rank] != chunk || !fits_) return;
      fill_wait(rank, gradient_at(rank, chunk), chunk == 0 || before_backward_);
      put_backward(rank, chunk);
    };
    for (std::int32_t rank = ranks_; rank-- > 0;) put(rank, 0);
    for (std::int32_t rank = 0; rank < ranks_; ++rank) put(rank, 1);
  }

  // The chunk whose input has arrived, chunk 1 before chunk 0; -1: none.
  int chunk_of_forward(std::int32_t rank) const {
    const rank_state& r = state_[rank];
    if (r.forwards(1) >= units_) return -1;
    if (r.forwards(1) >= r.forwards(0)) return 0;
    if (input_at(rank, 1) != unknown) return 1;
    return r.forwards(0) < units_ && input_at(rank, 0) != unknown ? 0 : -1;
  }

  void forwards() {
    for (std::int32_t rank = 0; rank < ranks_ && fits_; ++rank) {
      const int chunk = chunk_of_forward(rank);
      if (chunk < 0) continue;
      make_room(rank);
      fill_wait(rank, input_at(rank, chunk), before_forward_);
      put_forward(rank, chunk);
    }
  }

  // Does the W that fit into the wait, and one beyond it if the rank would otherwise idle longest.
  void fill_wait(std::int32_t rank, std::int64_t there, bool also_beyond) {
    rank_state& r = state_[rank];
    if (there < 0) return;
    while (pending(rank) && r.clock + next_weight(r) <= there) put_weight(rank);
    const std::int64_t idle = std::max(longest_bubble_, most_allowed_ - allowed_[rank]);
    if (also_beyond && pending(rank) && there - r.clock > idle - r.bubble) put_weight(rank);
  }

  const std::int32_t ranks_, units_, room_;
  const bool before_forward_, before_backward_;
  const ticks& costs_;
  const std::vector<std::int64_t> allowed_;
  const std::int64_t most_allowed_;
  std::int64_t longest_bubble_ = 0;
  bool fits_ = true;
  std::vector<rank_state> state_;
};

// The best order that is found; none if the room does not suffice.
std::vector<row> find(const request& wanted, const ticks& costs, std::int32_t room) {
  std::vector<row> best;
  std::int64_t shortest = 0;
  for (const bool before_backward : {true, false}) {
    for (const bool before_forward : {true, false}) {
      std::vector<std::int64_t> allowed(wanted.ranks, 0);
      for (std::int64_t longest = -1;;) {
        attempt one(wanted, costs, room, before_forward, before_backward, std::move(allowed));
        if (!one.run() || (longest >= 0 && one.longest() >= longest)) break;
        longest = one.longest();
        allowed = one.bubbles();
        if (!best.empty() && longest >= shortest) continue;
        shortest = longest;
        best = std::move(one).rows();
      }
    }
  }
  return best;
}

// A cap within which an order is found, if `room` is too small: by bisection below a cap that
// always suffices.
std::int32_t enough_above(const request& wanted, const ticks& costs, std::int32_t room) {
  std::int32_t enough = std::max(2 * wanted.ranks, room + 1);
  while (enough - room > 1) {
    const std::int32_t middle = room + (enough - room) / 2;
    (find(wanted, costs, middle).empty() ? room : enough) = middle;
  }
  return enough;
}

}  // namespace

schedule make_zbv_greedy(const request& wanted) {
  const std::int32_t room = wanted.room_or(2 * wanted.ranks);
  const shape sizes = shape_of(wanted);
  ticks costs = ticks_of(wanted.costs, sizes, 3 * sizes.cells());
  std::vector<row> best = find(wanted, costs, room);
  if (best.empty() && !costs.shares.empty()) {  // treating stages as equal gives a valid order, too
    costs.shares.clear();
    best = find(wanted, costs, room);
  }
  if (best.empty()) refuse_cap(wanted, enough_above(wanted, costs, room) / 2.0);
  return {sizes, v_placement(wanted.ranks, 2), std::move(best)};
}

}  // namespace velo::sched
