// 1F1B-V: V placement with whole backwards, in two thirds of 1F1B's memory.
//
// Every micro-batch has the same block, six time slots after the previous one: forwards of one slot
// go down the ranks and up again, backwards of two slots go the same way, with three empty slots
// where two blocks would collide. Actions at both ends then move to earlier slots, as long as no
// rank exceeds the previous peak of all ranks. O(P M log(P M)), and moves over O(P) slots.
#include <algorithm>
#include <array>
#include <tuple>

#include "sched/pipeline/generate.hpp"

namespace velo::sched {
namespace {

enum type : int { f0, f1, b1, b0 };
using block = std::array<std::int64_t, 4>;

std::vector<block> make_blocks(std::int32_t ranks) {
  std::vector<block> blocks(ranks);
  std::int64_t now = 0;
  for (std::int32_t r = 0; r < ranks; ++r) blocks[r][f0] = now++;
  for (std::int32_t r = ranks; r-- > 0;) blocks[r][f1] = now++;
  if (ranks % 3 == 0) now += 3;
  std::int32_t turn = (3 - (ranks + 2) % 3) % 3;
  const auto take = [&](std::int64_t& slot) {
    slot = now;
    now += 2;
    if (++turn < 3) return;
    turn = 0;
    now += 3;
  };
  for (std::int32_t r = 0; r < ranks; ++r) take(blocks[r][b1]);
  for (std::int32_t r = ranks; r-- > 0;) take(blocks[r][b0]);
  return blocks;
}

struct slotted_action {
  std::int64_t slot;
  std::int32_t rank;
  int of;
  std::int32_t unit;
};

// The time slots of all ranks; actions can move to earlier ones.
class slots {
 public:
  slots(const std::vector<block>& blocks, std::int32_t units) : ranks_(blocks.size()) {
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
      for (int of = f0; of <= b0; ++of) {
        for (std::int32_t unit = 0; unit < units; ++unit) {
          const std::int64_t slot = blocks[rank][of] + 6 * std::int64_t{unit};
          all_.push_back({slot, static_cast<std::int32_t>(rank), of, unit});
          ranks_[rank].slots[of].push_back(slot);
          last_ = std::max(last_, slot + 1);
        }
      }
    }
    std::sort(all_.begin(), all_.end(), [](const slotted_action& a, const slotted_action& b) {
      return std::tie(a.slot, a.rank) < std::tie(b.slot, b.rank);
    });
    for (rank_slots& r : ranks_) fill(r);
  }

  // Moves actions in the order of their slots.
  void pull() {
    for (slotted_action& p : all_) {
      rank_slots& r = ranks_[p.rank];
      const std::int64_t to = p.of <= f1 ? slot_for_forward(p, r) : slot_for_backward(p, r);
      if (to != p.slot) move(r, p, to);
    }
  }

  std::vector<std::vector<action>> rows(const placement& stages) {
    std::sort(all_.begin(), all_.end(), [](const slotted_action& a, const slotted_action& b) {
      return std::tie(a.rank, a.slot) < std::tie(b.rank, b.slot);
    });
    std::vector<std::vector<action>> rows(ranks_.size());
    for (const slotted_action& p : all_) {
      const int chunk = p.of == f1 || p.of == b1 ? 1 : 0;
      rows[p.rank].push_back(
          make_action(p.of <= f1 ? VELO_ACTION_F : VELO_ACTION_B, stages[p.rank][chunk], p.unit));
    }
    return rows;
  }

 private:
  struct rank_slots {
    std::array<std::vector<std::int64_t>, 4> slots;
    std::vector<char> taken;
    std::vector<std::int64_t> held;  // activations after each slot
  };

  void fill(rank_slots& r) {
    r.taken.assign(static_cast<std::size_t>(last_) + 1, 0);
    r.held.assign(r.taken.size(), 0);
    std::vector<int> change(r.taken.size());
    for (int of = f0; of <= b0; ++of) {
      for (const std::int64_t slot : r.slots[of]) {
        r.taken[slot] = 1;
        if (of >= b1) r.taken[slot + 1] = 1;
        of <= f1 ? ++change[slot] : --change[slot + 1];
      }
    }
    std::int64_t held = 0;
    for (std::size_t slot = 0; slot < change.size(); ++slot)
      peak_ = std::max(peak_, r.held[slot] = held += change[slot]);
  }

  // The first slot after all inputs of an action.
  std::int64_t earliest(const slotted_action& p) const {
    const auto end = [&](std::int64_t rank, int of) {
      return ranks_[rank].slots[of][p.unit] + (of >= b1 ? 2 : 1);
    };
    const auto last_rank = static_cast<std::int32_t>(ranks_.size()) - 1;
    const bool down = p.of == f0 || p.of == b1;
    const bool turns = down ? p.rank == 0 : p.rank == last_rank;
    std::int64_t first = 0;
    if (!turns) first = end(p.rank + (down ? -1 : 1), p.of);
    if (turns && p.of != f0) first = end(p.rank, p.of - 1);
    if (p.unit > 0)
      first = std::max(first, ranks_[p.rank].slots[p.of][p.unit - 1] + (p.of >= b1 ? 2 : 1));
    return first;
  }

  std::int64_t slot_for_forward(const slotted_action& p, const rank_slots& r) const {
    const std::int64_t first = earliest(p);
    std::int64_t to = p.slot;
    while (to > first && r.held[to - 1] < peak_) --to;
    while (to < p.slot && r.taken[to]) ++to;
    return to;
  }
  std::int64_t slot_for_backward(const slotted_action& p, const rank_slots& r) const {
    std::int64_t to = earliest(p);
    while (to < p.slot && (r.taken[to] || r.taken[to + 1])) ++to;
    return std::min(to, p.slot);
  }

  void move(rank_slots& r, slotted_action& p, std::int64_t to) {
    const bool forward = p.of <= f1;
    for (int half = 0; half < (forward ? 1 : 2); ++half) {
      r.taken[p.slot + half] = 0;
      r.taken[to + half] = 1;
    }
    const int shift = forward ? 0 : 1;  // a backward releases in its second slot
    for (std::int64_t slot = to + shift; slot < p.slot + shift; ++slot)
      r.held[slot] += forward ? 1 : -1;
    p.slot = r.slots[p.of][p.unit] = to;
  }

  std::int64_t last_ = 0, peak_ = 0;
  std::vector<rank_slots> ranks_;
  std::vector<slotted_action> all_;
};

}  // namespace

schedule make_1f1b_v(const request& wanted) {
  slots all(make_blocks(wanted.ranks), wanted.microbatches);
  all.pull();
  const auto stages = v_placement(wanted.ranks, 2);
  const auto rows = all.rows(stages);
  return {shape_of(wanted), stages, {rows.begin(), rows.end()}};
}

}  // namespace velo::sched
