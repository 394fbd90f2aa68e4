// Static placement: valid, as low as an exhaustive search finds, at the bound where that is hard.
#include "memory/plan/solver/placement.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <thread>

#include "memory/plan/solver/greedy.hpp"
#include "memory/plan/solver/orders.hpp"
#include "memory/plan/solver/problem.hpp"
#include "memory/plan/solver/search.hpp"
#include "memory/plan/solver/sweep.hpp"
#include "tests/memory/plan/plan_instances.hpp"

using namespace velo::memory;
using namespace velo::testing;

namespace {

// The least height of all placements in which buffers fall one after another, over all orders: some
// order gives the optimum.
std::int64_t exhaustive(const std::vector<lifetime>& buffers) {
  std::vector<int> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  do {
    std::vector<std::int64_t> ends(buffers.size());
    std::int64_t height = 0;
    for (std::size_t x = 0; x < order.size(); ++x) {
      const lifetime& b = buffers[order[x]];
      std::int64_t low = 0;
      for (std::size_t y = 0; y < x; ++y) {
        const lifetime& other = buffers[order[y]];
        if (b.lower < other.upper && other.lower < b.upper) low = std::max(low, ends[y]);
      }
      ends[x] = low + b.size;
      height = std::max(height, ends[x]);
    }
    least = std::min(least, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

std::vector<lifetime> random_buffers(std::uint64_t seed, int count, int times, int sizes) {
  plan_random random(seed);
  std::vector<lifetime> made;
  for (int i = 0; i < count; ++i) {
    const auto lower = static_cast<std::int64_t>(random.below(times));
    made.push_back({lower, lower + 1 + static_cast<std::int64_t>(random.below(times)),
                    1 + static_cast<std::int64_t>(random.below(sizes))});
  }
  return made;
}

plan_limits within(double seconds, std::int64_t capacity = 0, std::uint64_t seed = 1) {
  plan_limits limits;
  limits.seconds = seconds;
  limits.capacity = capacity;
  limits.seed = seed;
  return limits;
}

}  // namespace

TEST_CASE("nothing to place has no height") {
  const placement none = place({}, within(1));
  CHECK(none.offsets.empty());
  CHECK(none.height == 0);
  CHECK(none.lower_bound == 0);
}

TEST_CASE("buffers that follow one another share an address, those that meet do not") {
  const std::vector<lifetime> buffers = {{0, 5, 100}, {5, 9, 70}, {4, 6, 30}};
  const placement p = place(buffers, within(1));
  check_placement(buffers, p);
  CHECK(p.height == 130);
  CHECK(p.lower_bound == 130);
}

TEST_CASE("small problems are placed as low as any placement is") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const std::vector<lifetime> buffers = random_buffers(seed, 7, 6, 5);
    const placement p = place(buffers, within(5));
    INFO("seed " << seed);
    check_placement(buffers, p);
    CHECK(p.height == exhaustive(buffers));
  }
}

// Heights just below the optimum are impossible, and the search says so: what it excludes without
// looking is never the only solution.
TEST_CASE("the search proves that nothing lies lower than the optimum") {
  for (std::uint64_t seed = 1000; seed < 1150; ++seed) {
    const std::vector<lifetime> buffers = random_buffers(seed, 7, 5, 6);
    std::vector<std::int32_t> every(buffers.size());
    std::iota(every.begin(), every.end(), 0);
    const plan_problem problem = make_problem(buffers, every, 1000);
    const std::int64_t optimum = exhaustive(buffers);
    INFO("seed " << seed);
    for (int where = 0; where < 6; ++where) {
      plan_search search(problem);
      search_strategy strategy;
      strategy.where = static_cast<search_strategy::moment>(where);
      strategy.what = static_cast<search_strategy::buffer>(seed % 4);
      strategy.walls = seed % 2 == 1;
      const auto never = [] { return false; };
      CHECK(search.run(optimum - 1, strategy, 1 << 20, seed, never) == search_result::impossible);
      CHECK(search.run(optimum, strategy, 1 << 20, seed, never) == search_result::found);
      CHECK(height_of(buffers, search.offsets()) <= optimum);
    }
  }
}

TEST_CASE("interlocked buffers that fill every moment are placed at the bound") {
  for (const churn& of : {churn{1, 100, 10}, churn{2, 120, 12}, churn{3, 120, 20, 0.9}}) {
    const std::vector<lifetime> buffers = make_churn(of);
    const placement p = place(buffers, within(60, of.height));
    INFO("seed " << of.seed);
    check_placement(buffers, p);
    CHECK(p.height <= of.height);
  }
}

TEST_CASE("one-pass heuristics alone do not place these") {
  const std::vector<lifetime> buffers = make_churn({1, 100, 10});
  const std::int64_t bound = largest_live(buffers);
  CHECK(height_of(buffers, plan_sweep(buffers).by_best_fit()) > bound);
  for (const plan_order order :
       {plan_order::area, plan_order::size, plan_order::length, plan_order::begin})
    for (const plan_fit fit : {plan_fit::lowest, plan_fit::best})
      CHECK(height_of(buffers, place_in_order(buffers, sorted(buffers, order), fit)) > bound);
}

TEST_CASE("an order that learns places what no order by rule does") {
  int learned = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<lifetime> buffers = random_buffers(seed, 300, 60, 100000);
    const std::int64_t bound = largest_live(buffers);
    plan_orders orders(buffers, 1);
    std::int64_t by_rule = std::numeric_limits<std::int64_t>::max(), height = by_rule;
    for (int round = 0; round < 400 && height > bound; ++round) {
      const std::vector<std::int64_t> offsets = orders.next(bound);
      REQUIRE(lies_apart(buffers, offsets));
      height = std::min(height, height_of(buffers, offsets));
      if (round < 8) by_rule = height;
    }
    learned += height < by_rule;
  }
  CHECK(learned >= 8);
}

// Long-lived and short-lived buffers would fragment each other's room.
TEST_CASE("buffers that live long and briefly go to ends of their own") {
  std::vector<lifetime> buffers;
  plan_random random(3);
  for (std::int64_t t = 0; t < 40000; t += 2) {
    const auto size = static_cast<std::int64_t>(512 * (1 + random.below(200)));
    if (t % 20 == 0) buffers.push_back({t, t + 4000, 512 * 101});
    buffers.push_back({t, t + 2 + 2 * static_cast<std::int64_t>(random.below(3)), size});
  }
  const std::int64_t bound = largest_live(buffers);
  const plan_sweep sweep(buffers);
  const std::int64_t ceiling = (bound + bound / 100) / 512 * 512;
  const std::vector<std::int64_t> offsets = sweep.from_both_ends(10, ceiling, [] { return false; });
  REQUIRE(lies_apart(buffers, offsets));
  CHECK(height_of(buffers, offsets) <= ceiling);
  CHECK(height_of(buffers, sweep.by_best_fit()) > ceiling);
  int asked = 0;
  CHECK(sweep.from_both_ends(10, ceiling, [&] { return ++asked == 100; }).empty());
  CHECK(asked == 100);
  CHECK(sweep.length_of(0.8) == 6);
  CHECK(sweep.length_of(1) == 4000);
}

TEST_CASE("addresses are multiples of what all sizes are multiples of") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<lifetime> buffers = random_buffers(seed, 60, 30, 50);
    for (lifetime& b : buffers) b.size *= 192;
    const std::int64_t bound = largest_live(buffers);
    const placement p = place(buffers, within(0.02, bound + 100));
    for (const std::int64_t offset : p.offsets) CHECK(offset % 192 == 0);
  }
}

TEST_CASE("the same seed gives the same placement, whatever the time") {
  const std::vector<lifetime> buffers = make_churn({4, 80, 8});
  const placement first = place(buffers, within(60, 1 << 20, 7));
  const placement second = place(buffers, within(90, 1 << 20, 7));
  REQUIRE(first.height <= 1 << 20);
  CHECK(first.offsets == second.offsets);
}

// Threads of the planner, by the name they go under.
int planning_threads() {
  int count = 0;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream name(one.path() / "comm");
    std::string word;
    count += static_cast<bool>(name >> word) && word == "velo/plan";
  }
  return count;
}

TEST_CASE("several threads search until one is done, and none is left") {
  const std::vector<lifetime> buffers = make_churn({5, 300, 30});
#ifdef __SANITIZE_THREAD__
  plan_limits limits = within(20);  // the first placement alone takes seconds
#else
  plan_limits limits = within(1);  // too hard for so short a time
#endif
  limits.threads = 3;
  placement p;
  std::atomic<bool> placed{false};
  std::thread caller([&] {
    p = place(buffers, limits);
    placed = true;
  });
  int most = 0;
  while (!placed && most < 2) {
    most = std::max(most, planning_threads());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  caller.join();
  CHECK(most == 2);
  CHECK(planning_threads() == 0);
  check_placement(buffers, p);

  const std::vector<lifetime> easier = make_churn({4, 80, 8});
  limits.seconds = 100;
  const placement q = place(easier, limits);
  check_placement(easier, q);
  CHECK(q.height <= 1 << 20);
}

TEST_CASE("a capacity that is out of reach still gives a placement, and the gap") {
  const std::vector<lifetime> buffers = make_churn({5, 300, 30});
  const placement p = place(buffers, within(0.2, 1 << 19));
  check_placement(buffers, p);
  CHECK(p.lower_bound <= 1 << 20);
  CHECK(p.height >= p.lower_bound);
}

TEST_CASE("without time a placement is valid still") {
  const std::vector<lifetime> buffers = make_churn({6, 200, 20});
  check_placement(buffers, place(buffers, within(0)));
}

TEST_CASE("addresses and times at the end of their range are no trouble") {
  const std::int64_t end = std::numeric_limits<std::int64_t>::max();
  const std::vector<lifetime> buffers = {
      {-end, end, end / 4}, {-end, 0, end / 2}, {0, end, end / 4}};
  const placement p = place(buffers, within(1));
  check_placement(buffers, p);
  CHECK(p.height == end / 4 + end / 2);
}

TEST_CASE("a hundred thousand buffers take seconds and stay close to the bound") {
  const std::vector<lifetime> buffers = random_buffers(9, 100000, 20000, 1000);
  const placement p = place(buffers, within(0.5));
  check_placement(buffers, p);
  CHECK(static_cast<double>(p.height) < 1.05 * static_cast<double>(p.lower_bound));
}

TEST_CASE("the checker sees what overlaps") {
  const std::vector<lifetime> buffers = {{0, 5, 100}, {4, 9, 70}};
  for (const std::int64_t offset : {99, 50, 0, -1}) CHECK_FALSE(lies_apart(buffers, {0, offset}));
  CHECK(lies_apart(buffers, {0, 100}));
  CHECK(lies_apart(buffers, {70, 0}));
}
