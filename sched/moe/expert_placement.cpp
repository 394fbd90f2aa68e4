// How copies are counted, dealt, exchanged and kept in place; see the header.
#include "sched/moe/expert_placement.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

#include "core/index.hpp"

namespace velo::sched {

using core::at;

namespace {

std::int64_t largest_share(std::int64_t rows, std::int64_t copies) {
  return rows_of_copy(rows, 0, copies);
}

// Copies of each expert when there are `extra` more than experts; fewer where each rank has all
// that it can use.
std::vector<std::int64_t> count_copies(const std::vector<std::int64_t>& loads, std::int64_t ranks,
                                       std::int64_t extra) {
  std::vector<std::int64_t> copies(loads.size(), 1);
  using entry = std::pair<std::int64_t, std::int64_t>;  // share, minus the expert
  std::priority_queue<entry> busiest;
  const auto push = [&](std::int64_t e) {
    const std::int64_t share = largest_share(loads[at(e)], copies[at(e)]);
    if (copies[at(e)] < ranks && share > 1) busiest.push({share, -e});
  };
  for (std::int64_t e = 0; e < static_cast<std::int64_t>(loads.size()); ++e) push(e);
  for (; extra > 0 && !busiest.empty(); --extra) {
    const std::int64_t e = -busiest.top().second;
    busiest.pop();
    ++copies[at(e)];
    push(e);
  }
  return copies;
}

struct copy {
  int expert;
  std::int64_t rows;  // the largest share of the expert
};

std::vector<copy> sorted_copies(const std::vector<std::int64_t>& loads,
                                const std::vector<std::int64_t>& copies) {
  std::vector<copy> all;
  for (std::size_t e = 0; e < loads.size(); ++e)
    all.insert(all.end(), at(copies[e]), {static_cast<int>(e), largest_share(loads[e], copies[e])});
  std::stable_sort(all.begin(), all.end(),
                   [](const copy& a, const copy& b) { return a.rows > b.rows; });
  return all;
}

// Copies by rank while they are dealt and exchanged.
class packing {
 public:
  packing(std::int64_t ranks, std::int64_t slots, std::size_t experts)
      : slots_(slots),
        experts_(experts),
        held_(at(ranks)),
        rows_(at(ranks), 0),
        has_(at(ranks) * experts) {}

  void deal(const std::vector<copy>& all) {
    const std::size_t ranks = held_.size();
    for (std::size_t begin = 0; begin < all.size(); begin += ranks) {
      std::vector<std::size_t> free(ranks);
      std::iota(free.begin(), free.end(), std::size_t{0});
      std::stable_sort(free.begin(), free.end(),
                       [&](std::size_t a, std::size_t b) { return rows_[a] < rows_[b]; });
      for (std::size_t i = begin; i < std::min(all.size(), begin + ranks); ++i) {
        const auto to = std::find_if(free.begin(), free.end(),
                                     [&](std::size_t rank) { return !has(rank, all[i].expert); });
        held_[*to].push_back(all[i]);
        rows_[*to] += all[i].rows;
        has_[*to * experts_ + at(all[i].expert)] = true;
        free.erase(to);
      }
    }
  }

  void exchange(double tolerance) {
    trials_left_ = 1 << 20;
    while (!is_even(rows_, tolerance) && improve()) {
    }
  }

  std::vector<std::vector<int>> experts() const {
    std::vector<std::vector<int>> all;
    for (const auto& own : held_) {
      auto& to = all.emplace_back();
      for (const copy& each : own) to.push_back(each.expert);
      std::sort(to.begin(), to.end());
    }
    return all;
  }

 private:
  bool has(std::size_t rank, int expert) const { return has_[rank * experts_ + at(expert)]; }

  // Makes the exchange after which the busier of its two ranks has the fewest rows; false if none
  // relieves the busiest rank. A place without a copy counts as one without rows.
  bool improve() {
    const auto most = std::max_element(rows_.begin(), rows_.end());
    const auto from = static_cast<std::size_t>(most - rows_.begin());
    std::int64_t best = *most;
    std::tuple<std::size_t, std::size_t, std::size_t> found{};
    for (std::size_t i = 0; i < held_[from].size(); ++i)
      for (std::size_t to = 0; to < held_.size(); ++to) {
        if (to == from || has(to, held_[from][i].expert)) continue;
        const std::size_t places = held_[to].size() + (held_[to].size() < at(slots_) ? 1 : 0);
        for (std::size_t j = 0; j < places && trials_left_ > 0; ++j, --trials_left_) {
          const bool empty = j == held_[to].size();
          if (!empty && has(from, held_[to][j].expert)) continue;
          const std::int64_t moved = held_[from][i].rows - (empty ? 0 : held_[to][j].rows);
          const std::int64_t after = std::max(*most - moved, rows_[to] + moved);
          if (after < best) best = after, found = {i, to, j};
        }
      }
    if (best == *most) return false;
    swap(from, std::get<0>(found), std::get<1>(found), std::get<2>(found));
    return true;
  }

  void move(int expert, std::size_t from, std::size_t to) {
    has_[from * experts_ + at(expert)] = false;
    has_[to * experts_ + at(expert)] = true;
  }

  void swap(std::size_t from, std::size_t i, std::size_t to, std::size_t j) {
    const std::int64_t given = held_[from][i].rows;
    std::int64_t taken = 0;
    move(held_[from][i].expert, from, to);
    if (j == held_[to].size()) {
      held_[to].push_back(held_[from][i]);
      held_[from].erase(held_[from].begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      taken = held_[to][j].rows;
      move(held_[to][j].expert, to, from);
      std::swap(held_[from][i], held_[to][j]);
    }
    rows_[from] += taken - given;
    rows_[to] += given - taken;
  }

  std::int64_t slots_;
  std::size_t experts_;
  std::vector<std::vector<copy>> held_;  // by rank
  std::vector<std::int64_t> rows_;       // by rank
  std::vector<bool> has_;                // by rank and expert
  std::int64_t trials_left_ = 0;
};

expert_places with_copies(const std::vector<std::int64_t>& loads, std::int64_t ranks,
                          std::int64_t slots, double tolerance, std::int64_t extra) {
  packing parts(ranks, slots, loads.size());
  parts.deal(sorted_copies(loads, count_copies(loads, ranks, extra)));
  parts.exchange(tolerance);
  return {ranks, slots, parts.experts()};
}

std::int64_t count_common(const std::vector<int>& a, const std::vector<int>& b) {
  std::int64_t common = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();)
    if (*i == *j)
      ++common, ++i, ++j;
    else
      *i < *j ? ++i : ++j;
  return common;
}

// Gives each part to a rank that has much of it: the largest overlaps first.
void keep_in_place(std::vector<std::vector<int>>& parts,
                   const std::vector<std::vector<int>>& current) {
  std::vector<std::tuple<std::int64_t, std::size_t, std::size_t>> pairs;  // -overlap, rank, part
  for (std::size_t rank = 0; rank < current.size(); ++rank)
    for (std::size_t part = 0; part < parts.size(); ++part)
      pairs.emplace_back(-count_common(current[rank], parts[part]), rank, part);
  std::sort(pairs.begin(), pairs.end());
  std::vector<std::vector<int>> placed(parts.size());
  std::vector<bool> has_part(parts.size()), is_given(parts.size());
  for (const auto& [overlap, rank, part] : pairs) {
    if (has_part[rank] || is_given[part]) continue;
    has_part[rank] = is_given[part] = true;
    placed[rank] = std::move(parts[part]);
  }
  parts = std::move(placed);
}

std::int64_t busiest(const std::vector<std::int64_t>& rows) {
  return *std::max_element(rows.begin(), rows.end());
}

}  // namespace

std::vector<std::vector<int>> expert_places::ranks_of(std::int64_t experts) const {
  std::vector<std::vector<int>> all(at(experts));
  for (std::size_t rank = 0; rank < placed.size(); ++rank)
    for (const int e : placed[rank]) all[at(e)].push_back(static_cast<int>(rank));
  return all;
}

std::vector<std::int64_t> rows_by_rank(const expert_places& of,
                                       const std::vector<std::int64_t>& loads) {
  std::vector<std::int64_t> rows(of.placed.size(), 0);
  const auto copies = of.ranks_of(static_cast<std::int64_t>(loads.size()));
  for (std::size_t e = 0; e < loads.size(); ++e) {
    const auto count = static_cast<std::int64_t>(copies[e].size());
    for (std::int64_t i = 0; i < count; ++i)
      rows[at(copies[e][at(i)])] += rows_of_copy(loads[e], i, count);
  }
  return rows;
}

bool is_even(const std::vector<std::int64_t>& rows, double tolerance) {
  const std::int64_t sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0}),
                     most = *std::max_element(rows.begin(), rows.end());
  const double mean = static_cast<double>(sum) / static_cast<double>(rows.size());
  return static_cast<double>(most) <= std::max((1 + tolerance) * mean, mean + 1);
}

expert_places place_experts(const std::vector<std::int64_t>& loads, std::int64_t ranks,
                            std::int64_t slots, double tolerance,
                            const std::vector<std::vector<int>>& current) {
  expert_places as_is = {ranks, slots, current};
  const std::vector<std::int64_t> now = rows_by_rank(as_is, loads);
  if (!current.empty() && is_even(now, tolerance)) return as_is;
  const std::int64_t room = ranks * slots - static_cast<std::int64_t>(loads.size());
  expert_places best;
  std::int64_t least = -1;
  for (std::int64_t extra = 0;;
       extra = std::min(room, extra + std::max<std::int64_t>(1, extra / 8))) {
    expert_places found = with_copies(loads, ranks, slots, tolerance, extra);
    const std::vector<std::int64_t> rows = rows_by_rank(found, loads);
    const std::int64_t most = busiest(rows);
    if (least < 0 || most < least) best = std::move(found), least = most;
    if (extra == room || is_even(rows, tolerance)) break;
  }
  if (current.empty()) return best;
  if (busiest(now) <= least) return as_is;
  keep_in_place(best.placed, current);
  return best;
}

}  // namespace velo::sched
