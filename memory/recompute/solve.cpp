// Candidate schedules, and the choice of the best one.
#include "memory/recompute/solve.hpp"

#include <algorithm>
#include <limits>

#include "memory/recompute/exact.hpp"
#include "memory/recompute/stages.hpp"

namespace velo::memory {
namespace {

constexpr int few_ops = 1024;   // operations of a graph whose tables are cheap
constexpr int tight_ops = 256;  // operations of a graph small enough to try a failed budget again

// The operations that annealing may evaluate: about 60 ms.
std::int64_t anneal_work(const op_graph& graph) {
  return graph.size() <= tight_ops ? 4'000'000 : 1'000'000;
}

// Beyond these limits a greedy schedule makes the same outputs over and over. The work is 1.5 times
// the work of schedules that succeed: 25 and 50 ms for 3,000 operations.
greedy_limits limits_of(const op_graph& graph, eviction rule) {
  const std::int64_t count = graph.size();
  greedy_limits limits;
  limits.steps =
      static_cast<std::size_t>(count <= few_ops ? 16 * count + 64 : 4 * count + 12 * few_ops);
  if (count <= tight_ops) return limits;
  const std::int64_t work = count * (count + 512) / 4 * (rule == eviction::next ? 3 : 6);
  limits.work = std::min(work, std::int64_t{1} << 32);
  return limits;
}

// Rules that know the coming operations come first, since they reach lower budgets.
constexpr eviction rules[] = {eviction::next, eviction::past, eviction::far};

// The least budget, as far as it is found, that a greedy schedule keeps.
std::int64_t least_greedy(const op_graph& graph) {
  const auto works = [&](std::int64_t budget) {
    return std::any_of(std::begin(rules), std::end(rules), [&](eviction rule) {
      if (rule != eviction::next && graph.size() > tight_ops) return false;
      return run_greedily(graph, budget, rule, limits_of(graph, rule)).has_value();
    });
  };
  std::int64_t low = least_for_one(graph), high = peak_of_all(graph);
  if (works(low)) return low;
  const int close = graph.size() > tight_ops ? 16 : 65536;
  while (high - low > 1 + low / close) {  // `low` does not work, `high` does
    const std::int64_t middle = low + (high - low) / 2;
    (works(middle) ? high : low) = middle;
  }
  return high;
}

// The best table repaired from a schedule for a larger budget, if no greedy schedule reaches the
// budget or has stages.
std::vector<stage_table> below_greedy(const op_graph& graph, std::int64_t budget,
                                      plan_random& random) {
  std::vector<stage_table> best;
  if (budget < least_for_one(graph)) return best;
  const std::int64_t enough = std::max(budget, least_greedy(graph));
  const std::int64_t more = enough + enough / 4;
  for (const eviction rule : rules) {
    const auto steps = run_greedily(graph, more, rule, limits_of(graph, rule));
    if (!steps.has_value()) continue;
    for (int tries = graph.size() > tight_ops ? 1 : 4; tries > 0; --tries) {
      stage_table table(graph, budget, *steps);
      if (!table.fits() && !table.repair(random)) continue;
      table.fill();
      if (!best.empty() && table.seconds() >= best.front().seconds()) continue;
      best.clear();
      best.push_back(std::move(table));
    }
  }
  return best;
}

}  // namespace

op_schedule measured(const op_graph& graph, std::vector<op_step> steps) {
  op_schedule s;
  std::int64_t live = 0;
  for (const op_step& step : steps) {
    if (!step.computes) {
      live -= graph.bytes[step.op];
      continue;
    }
    live += graph.bytes[step.op];
    s.seconds += graph.seconds[step.op];
    s.peak = std::max(s.peak, live + graph.workspace[step.op]);
  }
  s.steps = std::move(steps);
  return s;
}

std::int64_t peak_of_all(const op_graph& graph) {
  std::vector<std::int32_t> last_use(graph.size());
  for (std::int32_t i = 0; i < graph.size(); ++i) {
    last_use[i] = i;
    for (const std::int32_t from : graph.inputs[i]) last_use[from] = i;
  }
  std::int64_t live = 0, peak = 0;
  const auto free_after = [&](std::int32_t what, std::int32_t op) {
    if (last_use[what] == op && graph.keep[what] == 0) live -= graph.bytes[what];
  };
  for (std::int32_t i = 0; i < graph.size(); ++i) {
    live += graph.bytes[i];
    peak = std::max(peak, live + graph.workspace[i]);
    for (const std::int32_t from : graph.inputs[i]) free_after(from, i);
    free_after(i, i);
  }
  return peak;
}

namespace {

// The best of the greedy schedules and of the tables of stages.
op_schedule searched(const op_graph& graph, std::int64_t budget, std::uint64_t seed) {
  op_schedule best;
  best.seconds = std::numeric_limits<double>::infinity();
  plan_random random(seed);
  std::vector<stage_table> tables;  // empty, or the best one
  const auto offer = [&](op_schedule found) {
    if (found.seconds < best.seconds && found.peak <= budget) best = std::move(found);
  };
  const auto offer_table = [&](const std::vector<op_step>& steps) {
    stage_table table(graph, budget, steps);
    if (!table.fits() && !table.repair(random)) return;
    table.fill();
    if (!tables.empty() && table.seconds() >= tables.front().seconds()) return;
    tables.clear();
    tables.push_back(std::move(table));
  };
  const bool small = graph.size() <= few_ops;  // then tables are cheap
  for (const eviction rule : rules) {
    if (rule == eviction::far && !small) continue;
    greedy_limits limits = limits_of(graph, rule);
    if (!small) limits.seconds = best.seconds;
    auto steps = run_greedily(graph, budget, rule, limits);
    if (!steps.has_value()) continue;
    if (small) offer_table(*steps);
    offer(measured(graph, std::move(*steps)));
  }
  if (!small && graph.size() <= stage_table::most_ops && !best.steps.empty())
    offer_table(best.steps);
  if (small && tables.empty()) tables = below_greedy(graph, budget, random);
  if (!tables.empty()) {
    if (small) tables.front().anneal(random, anneal_work(graph));
    offer(measured(graph, tables.front().steps()));
  }
  return best;
}

// One of the greedy schedules, the start of an exact search.
op_schedule greedy(const op_graph& graph, std::int64_t budget) {
  op_schedule best;
  best.seconds = std::numeric_limits<double>::infinity();
  for (const eviction rule : rules) {
    auto steps = run_greedily(graph, budget, rule, limits_of(graph, rule));
    if (!steps.has_value()) continue;
    op_schedule found = measured(graph, std::move(*steps));
    if (found.seconds < best.seconds) best = std::move(found);
  }
  return best;
}

}  // namespace

op_schedule solve(const op_graph& graph, std::int64_t budget, std::uint64_t seed) {
  if (graph.size() == 0) return {{}, 0, 0, true};
  const bool is_small = graph.size() <= always_exact;
  op_schedule best = is_small ? greedy(graph, budget) : searched(graph, budget, seed);
  best.is_optimal = !best.steps.empty() && best.seconds <= seconds_once(graph);
  if (best.is_optimal || graph.size() > most_exact) return best;
  exact_schedule found = least_seconds(graph, budget, best.seconds);
  if (!found.steps.empty()) best = measured(graph, std::move(found.steps));
  best.is_optimal = found.proven;
  return best;
}

std::int64_t least_budget(const op_graph& graph, std::uint64_t seed) {
  if (graph.size() <= always_exact) return least_bytes_exactly(graph);
  const std::int64_t greedy = least_greedy(graph);
  if (graph.size() > tight_ops) return greedy;
  std::int64_t low = least_for_one(graph) - 1, high = greedy;  // `low` is too small, `high` is not
  while (high - low > 1 + low / 256) {
    const std::int64_t middle = low + (high - low) / 2;
    plan_random random(seed);
    (below_greedy(graph, middle, random).empty() ? low : high) = middle;
  }
  return high;
}

}  // namespace velo::memory
