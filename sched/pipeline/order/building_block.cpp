// The time slots of all actions, by rank and type. The actions of a type are in the order of
// micro-batches, and so are their slots. No two actions of a rank share a slot.
#include "sched/pipeline/order/building_block.hpp"

#include <algorithm>
#include <tuple>

namespace velo::sched {
namespace {

enum type : int { f0, f1, i1, i0, w, w_of_0 };  // w: of both chunks, or of chunk 1 alone
using times = std::vector<std::int64_t>;
using rank_slots = std::vector<times>;  // by type

struct slotted_action {
  std::int64_t slot;
  std::int32_t rank;
  int of;
  std::int32_t unit;
};

// All actions in the order of their slots.
std::vector<slotted_action> in_order(const std::vector<rank_slots>& slots) {
  std::vector<slotted_action> all;
  for (std::size_t rank = 0; rank < slots.size(); ++rank)
    for (std::size_t of = 0; of < slots[rank].size(); ++of)
      for (std::size_t unit = 0; unit < slots[rank][of].size(); ++unit)
        all.push_back({slots[rank][of][unit], static_cast<std::int32_t>(rank), static_cast<int>(of),
                       static_cast<std::int32_t>(unit)});
  std::sort(all.begin(), all.end(), [](const slotted_action& a, const slotted_action& b) {
    return std::tie(a.slot, a.rank, a.of) < std::tie(b.slot, b.rank, b.of);
  });
  return all;
}

std::int64_t last_slot(const rank_slots& of) {
  std::int64_t last = -1;
  for (const times& t : of) last = std::max(last, t.empty() ? -1 : t.back());
  return last;
}

// Gives every W the first free slot after its I. split: by chunks, first those of chunk 1.
void add_weights(rank_slots& of, bool split) {
  const std::int64_t last = last_slot(of);
  std::vector<signed char> taken(static_cast<std::size_t>(last) + 1, -1);
  for (int t = f0; t <= i0; ++t)
    for (const std::int64_t slot : of[t]) taken[slot] = static_cast<signed char>(t);
  of.resize(split ? 6 : 5);
  std::size_t waiting[2] = {};
  const auto put = [&](std::int64_t slot) {
    const int which = waiting[0] > 0 ? 0 : 1;
    --waiting[which];
    of[w + which].push_back(slot);
  };
  for (std::int64_t slot = 0; slot <= last; ++slot) {
    const auto t = taken[slot];
    if (t == i1 || t == i0) ++waiting[split ? t - i1 : 0];
    if (t < 0 && waiting[0] + waiting[1] > 0) put(slot);
  }
  for (std::int64_t slot = last + 1; waiting[0] + waiting[1] > 0; ++slot) put(slot);
}

// When an action's inputs, other than W, end on its own rank and on others.
template <class At>
std::int64_t needed(const slotted_action& p, std::int32_t ranks, At&& at) {
  std::int64_t end = -1;
  if ((p.of == f0 || p.of == i1) && p.rank > 0) end = at(p.rank - 1, p.of, p.unit);
  if ((p.of == f1 || p.of == i0) && p.rank + 1 < ranks) end = at(p.rank + 1, p.of, p.unit);
  if (p.of >= f1 && p.of <= i0) end = std::max(end, at(p.rank, p.of - 1, p.unit));
  if (p.unit > 0) end = std::max(end, at(p.rank, p.of, p.unit - 1));
  return end;
}

// Moves every action to the first slot that its inputs and its order on the rank allow.
void squeeze(std::vector<rank_slots>& slots) {
  const auto ranks = static_cast<std::int32_t>(slots.size());
  times free(ranks, 0);
  for (const slotted_action& p : in_order(slots)) {
    const std::int64_t before =
        needed(p, ranks, [&](std::int32_t r, int t, std::int32_t u) { return slots[r][t][u]; });
    free[p.rank] = std::max(free[p.rank], before + 1);
    slots[p.rank][p.of][p.unit] = free[p.rank]++;
  }
}

// The slots of a rank while actions move, and the activations held after each slot.
class track {
 public:
  // implied: W have no slots of their own and take free ones.
  track(const rank_slots& of, bool implied)
      : implied_(implied), types_(static_cast<std::size_t>(last_slot(of)) + 1, -1) {
    for (std::size_t t = 0; t < of.size(); ++t)
      for (const std::int64_t slot : of[t]) types_[slot] = static_cast<signed char>(t);
    level_.resize(types_.size());
    update(0, size());
  }

  std::int64_t peak() const {
    std::int64_t most = 0;
    for (const state& s : level_) most = std::max(most, s.held);
    return most;
  }
  bool free(std::int64_t slot) const { return types_[slot] < 0; }

  // Whether at most `most` activations are held if an action moves to an earlier free slot.
  bool fits(std::int64_t from, std::int64_t to, std::int64_t most) {
    std::swap(types_[from], types_[to]);
    state now = before(to);
    bool fits = true;
    for (std::int64_t slot = to; slot < size() && fits; ++slot) {
      now = after(now, slot);
      fits = now.held <= most;
      if (slot >= from && now.held == level_[slot].held && now.waiting == level_[slot].waiting)
        break;
    }
    std::swap(types_[from], types_[to]);
    return fits;
  }
  void move(std::int64_t from, std::int64_t to) {
    std::swap(types_[from], types_[to]);
    update(to, from);
  }

 private:
  struct state {
    std::int64_t held = 0, waiting = 0;  // activations, W without a slot
  };
  std::int64_t size() const { return static_cast<std::int64_t>(types_.size()); }
  state before(std::int64_t slot) const { return slot == 0 ? state{} : level_[slot - 1]; }
  state after(state now, std::int64_t slot) const {
    const auto t = types_[slot];
    if (t == f0 || t == f1) ++now.held;
    if (t == w) --now.held;
    if (!implied_) return now;
    if (t == i1 || t == i0) ++now.waiting;
    if (t < 0 && now.waiting > 0) {
      --now.held;
      --now.waiting;
    }
    return now;
  }
  // changed: the last slot that differs.
  void update(std::int64_t from, std::int64_t changed) {
    state now = before(from);
    for (std::int64_t slot = from; slot < size(); ++slot) {
      now = after(now, slot);
      state& old = level_[slot];
      if (slot >= changed && now.held == old.held && now.waiting == old.waiting) return;
      old = now;
    }
  }

  const bool implied_;
  std::vector<signed char> types_;  // the type in each slot, -1: free
  std::vector<state> level_;
};

// Moves actions at both ends to earlier slots without exceeding the peak; if W are implied, only at
// the end.
void pull(std::vector<rank_slots>& slots, bool implied) {
  const auto ranks = static_cast<std::int32_t>(slots.size());
  const auto last_unit = static_cast<std::int32_t>(slots[0][f0].size()) - 1;
  std::vector<track> tracks;
  std::int64_t peak = 0;
  for (const rank_slots& of : slots) {
    tracks.emplace_back(of, implied);
    peak = std::max(peak, tracks.back().peak());
  }
  std::vector<times> gradients(ranks);  // slots of I so far, in order; W follow them in turn
  const auto keep = [&](const slotted_action& p) {
    if (p.of != i1 && p.of != i0) return;
    times& all = gradients[p.rank];
    const std::int64_t slot = slots[p.rank][p.of][p.unit];
    all.insert(std::upper_bound(all.begin(), all.end(), slot), slot);
  };
  enum { beginning, middle, end } part = beginning;
  for (const slotted_action& p : in_order(slots)) {
    if (part == beginning && p.of == i0 && p.rank == 0) part = middle;
    const bool stays = part == middle || (part == beginning && implied);
    if (part == middle && p.of == f0 && p.unit == last_unit) part = end;
    std::int64_t& slot = slots[p.rank][p.of][p.unit];
    if (!stays) {
      std::int64_t to =
          needed(p, ranks, [&](std::int32_t r, int t, std::int32_t u) { return slots[r][t][u]; }) +
          1;
      if (p.of == w) to = std::max(to, gradients[p.rank][p.unit] + 1);
      track& rank = tracks[p.rank];
      while (to < slot && !(rank.free(to) && rank.fits(slot, to, peak))) ++to;
      if (to < slot) rank.move(slot, to);
      slot = to;
    }
    keep(p);
  }
}

}  // namespace

schedule repeat_block(const request& wanted, const std::vector<block>& blocks) {
  const std::int32_t ranks = wanted.ranks, units = wanted.microbatches;
  std::vector<rank_slots> slots(ranks);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    slots[rank].resize(4);
    for (int t = f0; t <= i0; ++t)
      for (std::int32_t unit = 0; unit < units; ++unit)
        slots[rank][t].push_back(blocks[rank][t] + 6 * std::int64_t{unit});
  }
  for (rank_slots& of : slots) add_weights(of, false);
  pull(slots, false);
  squeeze(slots);
  for (rank_slots& of : slots) of.resize(4);
  pull(slots, true);
  for (rank_slots& of : slots) add_weights(of, false);
  squeeze(slots);
  for (rank_slots& of : slots) {
    of.resize(4);
    add_weights(of, true);
  }

  constexpr velo_action_kind kinds[] = {VELO_ACTION_F, VELO_ACTION_F, VELO_ACTION_I,
                                        VELO_ACTION_I, VELO_ACTION_W, VELO_ACTION_W};
  constexpr int chunks[] = {0, 1, 1, 0, 1, 0};
  const auto stages = v_placement(ranks, 2);
  std::vector<std::vector<action>> rows(ranks);
  for (const slotted_action& p : in_order(slots))
    rows[p.rank].push_back(make_action(kinds[p.of], stages[p.rank][chunks[p.of]], p.unit));
  return {shape_of(wanted), stages, {rows.begin(), rows.end()}};
}

}  // namespace velo::sched
