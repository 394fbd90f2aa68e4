// Plans for recompute through their C entries: every plan is played, and held against DTR and,
// where graphs are small, against the optimum by brute force.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "tests/memory/pool/pools.hpp"
#include "tests/memory/recompute/recompute_graphs.hpp"
#include "tests/random.hpp"
#include "velo/velo.h"

namespace {

using namespace velo::testing;

class plan {
 public:
  plan() { REQUIRE(velo_recompute_plan_create(&handle_) == VELO_OK); }
  explicit plan(const graph& g) : plan() {
    for (const graph_op& op : g) REQUIRE(add(op) == VELO_OK);
  }
  ~plan() { velo_recompute_plan_destroy(handle_); }
  plan(const plan&) = delete;
  plan& operator=(const plan&) = delete;
  operator velo_recompute_plan() const { return handle_; }

  velo_status add(const graph_op& given) const {
    velo_recompute_op op = VELO_RECOMPUTE_OP_INIT;
    op.seconds = given.seconds;
    op.bytes = static_cast<std::uint64_t>(given.bytes);
    op.workspace = static_cast<std::uint64_t>(given.workspace);
    op.keep = given.keep ? 1 : 0;
    op.inputs = given.inputs.data();
    op.input_count = static_cast<std::int64_t>(given.inputs.size());
    return velo_recompute_plan_add(handle_, &op, nullptr);
  }
  velo_status solve(std::int64_t budget) const {
    velo_recompute_plan_options options = VELO_RECOMPUTE_PLAN_OPTIONS_INIT;
    options.budget = static_cast<std::uint64_t>(budget);
    return velo_recompute_plan_solve(handle_, &options);
  }
  velo_recompute_plan_stats stats() const {
    velo_recompute_plan_stats stats = VELO_RECOMPUTE_PLAN_STATS_INIT;
    REQUIRE(velo_recompute_plan_get_stats(handle_, &stats) == VELO_OK);
    return stats;
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    const auto count = static_cast<std::int64_t>(stats().steps);
    for (std::int64_t i = 0; i < count; ++i) {
      velo_recompute_step step = VELO_RECOMPUTE_STEP_INIT;
      REQUIRE(velo_recompute_plan_get_step(handle_, i, &step) == VELO_OK);
      all.push_back(step.kind == VELO_RECOMPUTE_STEP_COMPUTE ? step.op : ~step.op);
    }
    return all;
  }

 private:
  velo_recompute_plan handle_ = nullptr;
};

// Most bytes that one operation needs.
std::int64_t largest_of(const graph& g) {
  std::int64_t most = 0;
  for (const graph_op& op : g) {
    std::int64_t sum = op.bytes + op.workspace;
    for (const std::int64_t from : op.inputs) sum += g[from].bytes;
    most = std::max(most, sum);
  }
  return most;
}

// The peak of running everything once.
std::int64_t peak_of(const graph& g) {
  return play(g, plain(g)).peak;
}

// Plays a plan's steps and checks that they are right and keep to the budget.
played check_steps(const graph& g, const plan& p, std::int64_t budget) {
  played result = play(g, p.steps());
  CHECK(result.fault.empty());
  CHECK(result.peak <= budget);
  return result;
}

// The least budget that a refusal names.
std::int64_t named_budget() {
  return std::stoll(last_record().expected.substr(std::string("at least ").size()));
}

// Least seconds of a graph of few operations, by trying every sequence of runs and frees: the
// shortest path over (operations that have run, outputs there), in full, without bounds. Infinite:
// none exists.
double best_of(const graph& g, std::int64_t budget) {
  const std::size_t sets = std::size_t{1} << g.size();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  std::vector<double> known((g.size() + 1) * sets, infinite);
  using entry = std::pair<double, std::size_t>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> open;
  const auto reach = [&](std::size_t next, std::size_t set, double seconds) {
    double& best = known[next * sets + set];
    if (seconds >= best) return;
    best = seconds;
    open.push({seconds, next * sets + set});
  };
  reach(0, 0, 0);
  while (!open.empty()) {
    const auto [seconds, at] = open.top();
    open.pop();
    if (seconds > known[at]) continue;
    const std::size_t next = at / sets, set = at % sets;
    std::int64_t live = 0;
    for (std::size_t i = 0; i < next; ++i) {
      if ((set >> i & 1) == 0) continue;
      live += g[i].bytes;
      reach(next, set & ~(std::size_t{1} << i), seconds);
    }
    for (std::size_t op = 0; op < g.size() && op <= next; ++op) {
      bool ready = (set >> op & 1) == 0;
      for (const std::int64_t from : g[op].inputs) ready = ready && (set >> from & 1) != 0;
      if (!ready || live + g[op].bytes + g[op].workspace > budget) continue;
      reach(op == next ? next + 1 : next, set | std::size_t{1} << op, seconds + g[op].seconds);
    }
  }
  double best = infinite;
  for (std::size_t set = 0; set < sets; ++set) {
    bool kept = true;
    for (std::size_t i = 0; i < g.size(); ++i) kept = kept && (!g[i].keep || (set >> i & 1) != 0);
    if (kept) best = std::min(best, known[g.size() * sets + set]);
  }
  return best;
}

// Operations with up to three inputs each, some without bytes, some without seconds, some kept.
graph any_graph(int count, random_source32& random) {
  graph g;
  for (int i = 0; i < count; ++i) {
    graph_op op;
    op.seconds = random.one_in(8) ? 0 : static_cast<double>(1 + random.below(20));
    op.bytes = random.one_in(10) ? 0 : static_cast<std::int64_t>(1 + random.below(60));
    op.workspace = random.one_in(4) ? static_cast<std::int64_t>(random.below(40)) : 0;
    op.keep = random.one_in(5);
    std::set<std::int64_t> inputs;
    for (auto more = i == 0 ? 0 : random.below(4); more > 0; --more)
      inputs.insert(static_cast<std::int64_t>(random() % static_cast<unsigned>(i)));
    op.inputs.assign(inputs.begin(), inputs.end());
    g.push_back(op);
  }
  return g;
}

}  // namespace

TEST_CASE("plans stay in their budget, run everything in order, and are never worse than DTR") {
  int beaten = 0, compared = 0;
  for (const int forward : {10, 30, 100}) {
    for (const bool branches : {false, true}) {
      for (unsigned seed = 1; seed <= 3; ++seed) {
        const graph g = training_step(forward, branches, seed);
        const plan p(g);
        const std::int64_t most = peak_of(g), least = largest_of(g);
        CHECK(p.stats().bytes_all == static_cast<std::uint64_t>(most));
        for (const int percent : {15, 40, 70, 100}) {
          const std::int64_t budget = least + (most - least) * percent / 100;
          const double greedy = dtr(g, budget).seconds();
          INFO(forward << " forward, branches " << branches << ", seed " << seed << ", " << percent
                       << " %");
          if (p.solve(budget) != VELO_OK) {
            CHECK(std::isinf(greedy));
            continue;
          }
          const played result = check_steps(g, p, budget);
          CHECK(result.peak == static_cast<std::int64_t>(p.stats().bytes_peak));
          CHECK(p.stats().seconds_more == Approx(result.seconds - once(g)).margin(1e-9));
          CHECK(result.seconds <= greedy * (1 + 1e-12));
          if (percent == 100) CHECK(result.seconds == once(g));
          ++compared;
          beaten += result.seconds < greedy ? 1 : 0;
        }
      }
    }
  }
  CHECK(compared > 60);
  CHECK(beaten > compared / 3);
}

TEST_CASE("plans of up to 16 operations are optimal, and none is found only where none exists") {
  random_source32 random(25);
  int without = 0, longer = 0;
  constexpr int small = 360, large = 30;  // graphs of up to 12 operations, and of 13 to 16
  for (int i = 0; i < small + large; ++i) {
    const int count = i < small ? 4 + i % 9 : 13 + i % 4;
    const graph g = i % 3 == 0 ? training_step(count / 2, i % 2 == 0, static_cast<unsigned>(i))
                               : any_graph(count, random);
    const plan p(g);
    const std::int64_t most = peak_of(g), least = largest_of(g);
    const std::int64_t budget =
        least + (most - least) * static_cast<std::int64_t>(random.below(70)) / 100;
    const double best = best_of(g, budget);
    INFO("graph " << i << " of " << count << ", budget " << budget << " of " << most);
    if (p.solve(budget) != VELO_OK) {
      CHECK(std::isinf(best));
      const std::int64_t named = named_budget();
      CHECK(std::isinf(best_of(g, named - 1)));
      CHECK(p.solve(named) == VELO_OK);
      ++without;
      continue;
    }
    const played result = check_steps(g, p, budget);
    CHECK(result.seconds == Approx(best).epsilon(1e-12));
    CHECK(p.stats().optimal == 1);
    longer += best > once(g) ? 1 : 0;
  }
  CHECK(without > 10);
  CHECK(longer > 100);
}

TEST_CASE("what a plan calls optimal is so, whatever its number of operations") {
  int proven = 0, open = 0;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const graph g = training_step(9, seed % 2 == 0, seed);
    const plan p(g);
    const std::int64_t most = peak_of(g), least = largest_of(g);
    for (const int percent : {30, 70, 100}) {
      const std::int64_t budget = least + (most - least) * percent / 100;
      if (p.solve(budget) != VELO_OK) continue;
      const double seconds = once(g) + p.stats().seconds_more;
      if (percent == 100) CHECK(p.stats().optimal == 1);
      (p.stats().optimal == 1 ? proven : open) += 1;
      if (p.stats().optimal == 1 && percent == 70 && seed <= 2)
        CHECK(seconds == Approx(best_of(g, budget)).epsilon(1e-12));
    }
  }
  CHECK(proven > 12);
  const graph large = training_step(100, true, 1);
  const plan p(large);
  const std::int64_t most = peak_of(large);
  CHECK(p.stats().optimal == 0);
  REQUIRE(p.solve(most / 2) == VELO_OK);
  CHECK(p.stats().optimal == 0);
  REQUIRE(p.solve(most) == VELO_OK);
  CHECK(p.stats().optimal == 1);  // nothing is made again
}

TEST_CASE("3,000 operations and graphs without an edge are planned") {
  const graph g = training_step(1500, true, 5);
  const plan p(g);
  const std::int64_t most = peak_of(g);
  REQUIRE(p.solve(most / 2) == VELO_OK);
  const played result = check_steps(g, p, most / 2);
  CHECK(result.seconds <= dtr(g, most / 2).seconds());

  const std::int64_t tight = largest_of(g) + (most - largest_of(g)) / 20;
  REQUIRE(p.solve(tight) == VELO_ERR_ARGUMENT);
  const std::int64_t named = named_budget();
  CHECK(named > tight);
  CHECK(named < most / 2);
  REQUIRE(p.solve(named) == VELO_OK);
  check_steps(g, p, named);

  graph apart(50);
  for (graph_op& op : apart) op.keep = true;
  const plan q(apart);
  CHECK(q.solve(49) == VELO_ERR_ARGUMENT);
  CHECK(named_budget() == 50);
  REQUIRE(q.solve(50) == VELO_OK);
  CHECK(play(apart, q.steps()).fault.empty());
  CHECK(q.stats().seconds_more == 0);
}

TEST_CASE("outputs without bytes and operations without seconds are planned") {
  graph g = training_step(8, true, 3);
  for (std::size_t i = 0; i < g.size(); i += 3) g[i].bytes = 0;
  for (std::size_t i = 0; i < g.size(); i += 2) g[i].seconds = 0;
  const plan p(g);
  const std::int64_t least = largest_of(g), most = peak_of(g);
  REQUIRE(p.solve((least + most) / 2) == VELO_OK);
  check_steps(g, p, (least + most) / 2);
  const plan empty;
  CHECK(empty.solve(0) == VELO_OK);
  CHECK(empty.stats().steps == 0);
}

TEST_CASE("the same operations, budget and seed give the same steps") {
  const graph g = training_step(40, true, 9);
  const std::int64_t budget = peak_of(g) / 2;
  const plan a(g), b(g);
  REQUIRE(a.solve(budget) == VELO_OK);
  REQUIRE(b.solve(budget) == VELO_OK);
  CHECK(a.steps() == b.steps());
}

TEST_CASE("a budget that is too small is refused with one that works, and with the operation") {
  const graph g = training_step(12, true, 2);
  const plan p(g);
  REQUIRE(p.solve(peak_of(g)) == VELO_OK);
  const auto before = p.steps();
  CHECK_REFUSED(p.solve(largest_of(g) - 1), VELO_ERR_ARGUMENT, "options.budget");
  CHECK(last_record().cause.find("alone needs") != std::string::npos);
  const std::int64_t named = named_budget();
  CHECK(p.steps() == before);  // a failure leaves them
  CHECK(p.solve(named) == VELO_OK);
  CHECK(play(g, p.steps()).peak <= named);
}

TEST_CASE("operations that make no sense are refused by the field, and add nothing") {
  const plan p;
  REQUIRE(p.add({1, 10, {}}) == VELO_OK);
  REQUIRE(p.add({1, 10, {0}}) == VELO_OK);
  const auto refused = [&](const graph_op& op, const char* argument) {
    INFO(argument);
    CHECK_REFUSED(p.add(op), VELO_ERR_ARGUMENT, argument);
    CHECK(p.stats().ops == 2);
  };
  refused({1, 10, {0, 2}}, "op.inputs[1]");  // itself: a cycle
  refused({1, 10, {7}}, "op.inputs[0]");
  refused({1, 10, {-1}}, "op.inputs[0]");
  refused({-1, 10, {0}}, "op.seconds");
  refused({std::nan(""), 10, {0}}, "op.seconds");
  refused({HUGE_VAL, 10, {0}}, "op.seconds");
  refused({2e18, 10, {0}}, "op.seconds");
  refused({1, -1, {0}}, "op.bytes");
  refused({1, INT64_MAX - 10, {0}}, "op.bytes");  // the sum
  refused({1, 10, {0}, false, INT64_MAX - 20}, "op.workspace");
  velo_recompute_op op = VELO_RECOMPUTE_OP_INIT;
  op.input_count = 1;
  CHECK(velo_recompute_plan_add(p, &op, nullptr) == VELO_ERR_NULL);
  op.input_count = INT64_MAX;
  CHECK(velo_recompute_plan_add(p, &op, nullptr) == VELO_ERR_ARGUMENT);
  op.input_count = 0;
  op.keep = 2;
  CHECK(velo_recompute_plan_add(p, &op, nullptr) == VELO_ERR_ARGUMENT);
  CHECK(p.solve(-1) == VELO_ERR_ARGUMENT);
  velo_recompute_step step = VELO_RECOMPUTE_STEP_INIT;
  CHECK(velo_recompute_plan_get_step(p, 0, &step) == VELO_ERR_STATE);
  REQUIRE(p.solve(20) == VELO_OK);
  CHECK(velo_recompute_plan_get_step(p, 99, &step) == VELO_ERR_ARGUMENT);
  REQUIRE(p.add({1, 10, {1}}) == VELO_OK);
  CHECK(p.stats().solved == 0);  // what comes after the solution ends it
  CHECK(velo_recompute_plan_get_step(p, 0, &step) == VELO_ERR_STATE);
}
