// The shortest order found for given costs within a limit of memory.
//
// Two sources are searched. The first is every kind of the table that AUTO may try: it is generated
// and simulated, and dropped if it exceeds the limit. The second is list scheduling, which keeps
// the limit, for each placement under every policy of a grid: first for few micro-batches, then the
// best policies for all. No policy is best everywhere, so the better source wins; the result is
// never longer than a kind that fits. Beyond `most_work` actions no more policies are tried.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sched/pipeline/generate.hpp"
#include "sched/pipeline/kinds.hpp"
#include "sched/pipeline/order/list_order.hpp"
#include "sched/simulate/simulate.hpp"

namespace velo::sched {
namespace {

constexpr std::int64_t most_work = std::int64_t{1} << 24;
constexpr std::size_t finalists = 4;

// The policies worth trying: those that were best for some of 200 random costs and limits.
std::vector<policy> policies(std::int32_t chunks) {
  using priorities = std::array<std::int8_t, 4>;
  static constexpr priorities of_one[] = {{1, 0, 2, 3}, {2, 0, 1, 3}, {0, 0, 1, 2}, {2, 0, 0, 1}};
  static constexpr priorities of_two[] = {{1, 0, 2, 3}, {2, 0, 1, 3}, {2, 1, 0, 3}, {0, 2, 1, 3}};
  std::vector<policy> all;
  for (const priorities& priority : chunks == 1 ? of_one : of_two) {
    for (const bool first_chunk : {false, true}) {
      if (chunks == 1 && first_chunk) continue;
      for (const double wait_share : {0.0, 0.25, 0.5, 1.0})
        all.push_back({priority, first_chunk, wait_share});
    }
  }
  return all;
}

class search {
 public:
  explicit search(const request& wanted)
      : wanted_(wanted), cap_(wanted.cap == 0 ? wanted.ranks : wanted.cap) {}

  schedule run() {
    for (const kind_row* one : auto_candidates())
      if (takes(one->chunks)) try_kind(*one);
    if (takes(1)) try_policies(1, loop_placement(wanted_.ranks, 1));
    if (takes(2)) try_policies(2, v_placement(wanted_.ranks, 2));
    if (takes(2)) try_policies(2, loop_placement(wanted_.ranks, 2));
    if (!found_) refuse_cap(wanted_, least_);
    return std::move(best_);
  }

 private:
  bool takes(std::int32_t chunks) const { return wanted_.chunks == 0 || wanted_.chunks == chunks; }
  request with(std::int32_t chunks) const {
    request one = wanted_;
    one.chunks = chunks;
    one.group = wanted_.ranks;
    return one;
  }
  void keep(schedule result, double makespan) {
    if (found_ && makespan >= shortest_) return;
    found_ = true;
    shortest_ = makespan;
    best_ = std::move(result);
  }

  // The cap in shares of stages; below 0 if one unit of a rank's own chunks does not fit.
  std::int64_t room_in(const placement& stages, const ticks& scale) {
    std::int64_t all = 0, most = 0;
    for (const std::vector<std::int32_t>& of_rank : stages) {
      std::int64_t sum = 0;
      for (const std::int32_t stage : of_rank) sum += scale.share(stage);
      all += sum;
      most = std::max(most, sum);
    }
    least_ = std::min(least_, static_cast<double>(most) * wanted_.ranks / static_cast<double>(all));
    const double room = cap_ * static_cast<double>(all) / wanted_.ranks;
    return room < static_cast<double>(most) ? -1 : static_cast<std::int64_t>(room);
  }

  void try_kind(const kind_row& of) {
    request one = with(of.chunks);
    one.cap = cap_;
    try {
      schedule result = of.make(one);
      const ticks scale = ticks_of(wanted_.costs, result.sizes(), result.actions());
      std::vector<stuck_rank> stuck;
      const simulation times = simulate(result, scale, stuck);
      std::int64_t peak = 0;
      for (const rank_times& rank : times.ranks) peak = std::max(peak, rank.peak);
      if (scale.in_microbatches(peak, result.sizes()) > cap_) return;
      const double makespan = scale.value(times.makespan());
      keep(std::move(result), makespan);
    } catch (const core::failure& refused) {
      if (refused.code != VELO_ERR_ARGUMENT) throw;  // no such schedule of this size
    }
  }

  void try_policies(std::int32_t chunks, const placement& stages) {
    const shape sizes = shape_of(with(chunks));
    shape few = sizes;
    few.microbatches = std::min(sizes.microbatches, 2 * sizes.ranks);
    const ticks scale = ticks_of(wanted_.costs, sizes, 3 * sizes.cells());
    const std::int64_t room = room_in(stages, scale);
    if (room < 0) return;
    std::vector<std::pair<std::int64_t, policy>> tried;
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    for (const policy& one : policies(chunks)) {
      if ((work_ += 3 * few.cells()) > most_work) break;
      const ordered found = order_by(one, few, scale, stages, room, limit, false);
      if (!found.done) continue;
      tried.emplace_back(found.makespan, one);
      limit = std::min(limit, found.makespan + found.makespan / 64);
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (tried.size() > finalists) tried.resize(finalists);
    limit = std::numeric_limits<std::int64_t>::max();
    if (found_ && shortest_ * scale.unit < 1e18)
      limit = static_cast<std::int64_t>(std::ceil(shortest_ * scale.unit));
    const policy* winner = nullptr;
    for (const auto& [span, one] : tried) {
      if ((work_ += 3 * sizes.cells()) > most_work) break;
      const ordered result = order_by(one, sizes, scale, stages, room, limit, false);
      if (!result.done || (found_ && scale.value(result.makespan) >= shortest_)) continue;
      winner = &one;
      found_ = true;
      shortest_ = scale.value(result.makespan);
      limit = result.makespan;
    }
    if (winner == nullptr) return;
    auto rows = order_by(*winner, sizes, scale, stages, room, limit + 1, true).rows;
    best_ = {sizes, stages, {rows.begin(), rows.end()}};
  }

  const request wanted_;
  const double cap_;
  double least_ = std::numeric_limits<double>::max();  // every cap from here on has an order
  std::int64_t work_ = 0;
  bool found_ = false;
  double shortest_ = 0;
  schedule best_;
};

}  // namespace

schedule make_auto(const request& wanted) {
  return search(wanted).run();
}

}  // namespace velo::sched
