// The choice of modules at a budget: equal to trying everything, bisected on what a device has.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "memory/recompute/exact_sum.hpp"
#include "memory/recompute/knapsack.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/random.hpp"
#include "velo/velo.h"

namespace {

using velo::memory::choose;
using velo::memory::find_exact_sum;
using velo::memory::knapsack_choice;
using velo::memory::knapsack_class;
using namespace velo::testing;

velo_recompute_rule adaptive(std::int32_t layers, std::int32_t size = 1, std::int32_t rank = 0) {
  velo_recompute_rule r = VELO_RECOMPUTE_RULE_INIT;
  r.method = VELO_RECOMPUTE_METHOD_ADAPTIVE;
  r.layers = layers;
  r.pipeline_size = size;
  r.pipeline_rank = rank;
  return r;
}

struct answer {
  velo_status status;
  velo_recompute_choice choice;
  std::vector<std::int32_t> chosen;
};

answer ask(const velo_recompute_rule& rule, const velo_recompute_budget& budget,
           const std::vector<velo_recompute_module>& modules) {
  answer a{VELO_OK, VELO_RECOMPUTE_CHOICE_INIT, std::vector<std::int32_t>(modules.size(), -1)};
  a.status =
      velo_recompute_choose(&rule, &budget, modules.data(),
                            static_cast<std::int64_t>(modules.size()), a.chosen.data(), &a.choice);
  return a;
}

velo_recompute_budget budget_of(std::uint64_t bytes) {
  velo_recompute_budget b = VELO_RECOMPUTE_BUDGET_INIT;
  b.bytes = bytes;
  b.step = 1;
  return b;
}

// Bytes kept and seconds of recomputing when the modules of a set are recomputed; infinite seconds
// where a module is recomputed inside another.
struct outcome {
  std::uint64_t bytes = 0;
  double seconds = 0;
};
outcome play(const std::vector<velo_recompute_module>& modules, std::uint64_t set,
             std::uint64_t in_flight) {
  outcome o;
  const auto has = [&](std::int64_t i) { return (set >> i & 1) != 0; };
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(modules.size()); ++i) {
    bool inside = false;
    for (std::int32_t up = modules[i].parent; up >= 0; up = modules[up].parent)
      inside = inside || has(up);
    if (inside && has(i)) o.seconds = std::numeric_limits<double>::infinity();
    if (inside) continue;
    if (has(i)) {
      o.seconds += modules[i].seconds;
      o.bytes += in_flight * modules[i].bytes_input;
      continue;
    }
    o.bytes += in_flight * modules[i].bytes;  // less what the parts answer for
    for (const velo_recompute_module& m : modules)
      if (m.parent == static_cast<std::int32_t>(i)) o.bytes -= in_flight * m.bytes;
  }
  return o;
}

std::vector<velo_recompute_module> random_modules(random_source32& random, int count, int layers) {
  std::vector<velo_recompute_module> all;
  std::vector<std::uint64_t> left;
  for (int i = 0; i < count; ++i) {
    velo_recompute_module m{};
    m.layer = static_cast<std::int32_t>(random.below(layers));
    m.parent = -1;
    for (int j = 0; j < i; ++j)
      if (all[j].layer == m.layer && random.one_in(2)) m.parent = j;
    m.bytes = random.below(1000);
    if (m.parent >= 0) {
      m.bytes = std::min(m.bytes, left[m.parent] / 2);
      left[m.parent] -= m.bytes;
    }
    m.bytes_input = random.below(100);
    m.seconds = static_cast<double>(random.below(64)) / 64;
    all.push_back(m);
    left.push_back(m.bytes);
  }
  return all;
}

std::vector<knapsack_class> random_classes(random_source& random, int count, int options,
                                           std::int64_t most) {
  std::vector<knapsack_class> all(count);
  for (knapsack_class& c : all) {
    std::set<std::int64_t> bytes;
    while (static_cast<int>(bytes.size()) < options)
      bytes.insert(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)));
    double seconds = 1;
    for (const std::int64_t b : bytes) {
      c.push_back({b, seconds});
      seconds *= 0.5 + 0.4 * static_cast<double>(random.below(1024)) / 1024;
    }
  }
  return all;
}

// The sums of a choice are those of its options, and within the budget.
void check_sums(const std::vector<knapsack_class>& classes, const knapsack_choice& made,
                std::int64_t budget) {
  std::int64_t bytes = 0;
  double seconds = 0;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    bytes += classes[k][made.picked[k]].bytes;
    seconds += classes[k][made.picked[k]].seconds;
  }
  CHECK(bytes == made.bytes);
  CHECK(bytes <= budget);
  CHECK(seconds == Approx(made.seconds).epsilon(1e-12));
}

double exhaustive(const std::vector<knapsack_class>& classes, std::int64_t budget, std::size_t k) {
  if (budget < 0) return std::numeric_limits<double>::infinity();
  if (k == classes.size()) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (const auto& option : classes[k])
    best = std::min(best, option.seconds + exhaustive(classes, budget - option.bytes, k + 1));
  return best;
}

// The bytes that a choice has at least and at most.
struct byte_range {
  std::int64_t least = 0, most = 0;

  explicit byte_range(const std::vector<knapsack_class>& classes) {
    for (const knapsack_class& c : classes) least += c.front().bytes, most += c.back().bytes;
  }
  std::int64_t tenths(int count) const { return least + (most - least) / 10 * count; }
};

// Checks the choice at a random budget against every combination.
knapsack_choice check_optimal(const std::vector<knapsack_class>& classes, random_source& random) {
  const byte_range bytes(classes);
  const std::int64_t budget =
      bytes.least + static_cast<std::int64_t>(random.below(bytes.most - bytes.least + 2));
  knapsack_choice made = choose(classes, budget);
  CHECK(made.seconds == Approx(exhaustive(classes, budget, 0)).epsilon(1e-12));
  check_sums(classes, made, budget);
  return made;
}

}  // namespace

TEST_CASE("the knapsack is as good as trying every combination") {
  random_source random(7);
  for (int round = 0; round < 300; ++round) {
    const auto classes = random_classes(random, 1 + static_cast<int>(random.below(6)),
                                        1 + static_cast<int>(random.below(5)), 1 << 20);
    INFO("round " << round);
    const knapsack_choice made = check_optimal(classes, random);
    CHECK(made.bound == made.seconds);
  }
}

TEST_CASE("layers alike are chosen as well as by trying every combination") {
  random_source random(13);
  for (int round = 0; round < 200; ++round) {
    auto classes = random_classes(random, 7, 4, 1 << 20);
    for (std::size_t k = 1; k < classes.size(); ++k)
      if (random.below(8) != 0) classes[k] = classes[0];
    INFO("round " << round);
    check_optimal(classes, random);
  }
}

namespace {

// 128 classes of 16 options whose seconds fall as bytes grow, but for a share of them left to
// chance; bytes in pieces of a size.
std::vector<knapsack_class> proportional(random_source& random, double chance, std::int64_t piece) {
  std::vector<knapsack_class> classes(128);
  for (knapsack_class& c : classes) {
    std::set<std::int64_t> bytes;
    while (bytes.size() < 16)
      bytes.insert(static_cast<std::int64_t>(random() >> 34) / piece * piece);
    for (const std::int64_t b : bytes) {
      const double seconds = 2 - static_cast<double>(b) / static_cast<double>(1 << 30);
      c.push_back({b, seconds * (1 + chance * static_cast<double>(random() >> 40) / (1 << 24))});
      while (c.size() > 1 && c.back().seconds >= c[c.size() - 2].seconds) c.pop_back();
    }
  }
  return classes;
}

}  // namespace

TEST_CASE("where seconds go with bytes the budget is met to the byte, and nothing takes less") {
  random_source random(17);
  for (const std::int64_t piece : {1, 4096, 1 << 21}) {
    const auto classes = proportional(random, 0, piece);
    const byte_range bytes(classes);
    for (int tenth = 1; tenth < 10; ++tenth) {
      const std::int64_t budget = bytes.tenths(tenth);
      const knapsack_choice made = choose(classes, budget);
      INFO("pieces of " << piece << ", " << tenth << " tenths");
      CHECK(made.bound == made.seconds);
      CHECK(made.bytes > budget - piece);
      check_sums(classes, made, budget);
    }
  }
}

TEST_CASE(
    "where seconds nearly go with bytes the choice may stop short, and says by how much at most") {
  random_source random(19);
  const auto classes = proportional(random, 1e-3, 1);
  const knapsack_choice made = choose(classes, std::int64_t{64} << 30);
  CHECK(made.bound <= made.seconds);
  CHECK(made.seconds < made.bound * (1 + 1e-4));
  check_sums(classes, made, std::int64_t{64} << 30);
}

TEST_CASE("a sum that is one of many is found, and one that is none is not") {
  random_source random(23);
  std::vector<std::vector<std::int64_t>> lists(16);
  for (auto& list : lists) {
    list.push_back(0);
    while (list.size() < 12)
      list.push_back(static_cast<std::int64_t>(random() >> 36) - (std::int64_t{1} << 27));
  }
  for (int round = 0; round < 20; ++round) {
    const auto target = static_cast<std::int64_t>(random() >> 36);
    const auto found = find_exact_sum(lists, target);
    REQUIRE(found.size() == lists.size());
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) sum += lists[i][found[i]];
    CHECK(sum == target);
  }
  CHECK(find_exact_sum(lists, std::int64_t{1} << 40).empty());
  CHECK(find_exact_sum({}, 1).empty());
  CHECK(find_exact_sum({{0, 2}, {0, 4}}, 5).empty());
  CHECK(find_exact_sum({{0, 2}, {0, 4}}, 6) == std::vector<std::int32_t>{1, 1});
}

TEST_CASE("128 layers of 16 options within 80 GiB are chosen exactly, at every budget") {
  random_source random(11);
  for (const bool alike : {false, true}) {
    auto classes = random_classes(random, 128, 16, std::int64_t{1} << 30);
    if (alike)
      for (auto& c : classes) c = classes.front();
    const byte_range bytes(classes);
    for (int tenth = 0; tenth <= 10; ++tenth) {
      const knapsack_choice made = choose(classes, bytes.tenths(tenth));
      INFO(tenth << " tenths");
      CHECK(made.bound == made.seconds);
    }
  }
}

TEST_CASE("modules are chosen as well as by trying every set of them") {
  random_source32 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::int32_t size = 1 + static_cast<std::int32_t>(random.below(4));
    const std::int32_t rank = static_cast<std::int32_t>(random.below(size));
    const auto modules = random_modules(random, 1 + static_cast<int>(random.below(9)), 2);
    const auto flying = static_cast<std::uint64_t>(size - rank);
    std::uint64_t least = ~std::uint64_t{0};
    for (std::uint64_t set = 0; set < std::uint64_t{1} << modules.size(); ++set) {
      const outcome o = play(modules, set, flying);
      if (std::isfinite(o.seconds)) least = std::min(least, o.bytes);
    }
    const std::uint64_t all = play(modules, 0, flying).bytes;
    const std::uint64_t budget = least + random() % (all - least + 1);
    double best = std::numeric_limits<double>::infinity();
    for (std::uint64_t set = 0; set < std::uint64_t{1} << modules.size(); ++set) {
      const outcome o = play(modules, set, flying);
      if (o.bytes <= budget) best = std::min(best, o.seconds);
    }
    const answer a =
        ask(adaptive(2 * size, size, rank), budget_of(std::max<std::uint64_t>(budget, 1)), modules);
    INFO("round " << round);
    REQUIRE(a.status == VELO_OK);
    std::uint64_t set = 0;
    for (std::size_t i = 0; i < a.chosen.size(); ++i)
      set |= static_cast<std::uint64_t>(a.chosen[i]) << i;
    const outcome o = play(modules, set, flying);
    CHECK(o.bytes == a.choice.bytes);
    CHECK(o.bytes <= std::max<std::uint64_t>(budget, 1));
    CHECK(a.choice.bytes_least == least);
    CHECK(a.choice.bytes_most == all);
    if (budget > 0) CHECK(o.seconds == Approx(best).epsilon(1e-12));
    CHECK(a.choice.seconds == Approx(o.seconds).epsilon(1e-12));
  }
}

TEST_CASE("bytes count as often as micro-batches are in flight") {
  const std::vector<velo_recompute_module> modules = {{0, -1, 1000, 0, 1.0}};
  CHECK(ask(adaptive(4, 4, 0), budget_of(3999), modules).chosen == std::vector<std::int32_t>{1});
  CHECK(ask(adaptive(4, 4, 0), budget_of(4000), modules).chosen == std::vector<std::int32_t>{0});
  CHECK(ask(adaptive(4, 4, 3), budget_of(1000), modules).chosen == std::vector<std::int32_t>{0});
}

TEST_CASE("the bisection ends with the best choice that the device has room for") {
  random_source32 random(5);
  for (int round = 0; round < 100; ++round) {
    const auto modules = random_modules(random, 10, 2);
    const answer whole = ask(adaptive(2), budget_of(1 << 20), modules);
    REQUIRE(whole.status == VELO_OK);
    const std::uint64_t least = whole.choice.bytes_least, most = whole.choice.bytes_most;
    const std::uint64_t room = least + random() % (most - least + 10);  // only the test knows it
    velo_recompute_budget budget = budget_of(1 << 20);
    std::set<std::vector<std::int32_t>> tried;
    answer a = ask(adaptive(2), budget, modules);
    int trials = 0;
    for (; a.choice.settled == 0; ++trials) {
      REQUIRE(trials < 40);
      CHECK(tried.insert(a.chosen).second);  // never the same choice twice
      (a.choice.bytes <= room ? budget.fits : budget.fails) = a.choice.budget;
      a = ask(adaptive(2), budget, modules);
      REQUIRE(a.status == VELO_OK);
    }
    INFO("round " << round);
    CHECK(a.choice.bytes <= room);
    const answer best = ask(adaptive(2), budget_of(std::max<std::uint64_t>(room, 1)), modules);
    CHECK(a.choice.seconds == Approx(best.choice.seconds).epsilon(1e-12));
  }
}

TEST_CASE("the bisection ends where nothing is kept") {
  // Recomputed layers keep no input here, so the least that works is 0 bytes.
  const std::vector<velo_recompute_module> modules = {{0, -1, 1000, 0, 1.0}, {1, -1, 1000, 0, 1.0}};
  for (const std::uint64_t room : {0U, 1U, 999U, 1000U, 1999U, 2000U}) {
    velo_recompute_budget budget = budget_of(2000);
    answer a;
    int trials = 0;
    do {
      a = ask(adaptive(2), budget, modules);
      REQUIRE(a.status == VELO_OK);
      REQUIRE(a.choice.budget > 0);
      (a.choice.bytes <= room ? budget.fits : budget.fails) = a.choice.budget;
      REQUIRE(++trials < 20);
    } while (a.choice.settled == 0);
    CHECK(a.choice.bytes == room / 1000 * 1000);
  }
}

TEST_CASE("a budget below the least that works is refused with that least") {
  const std::vector<velo_recompute_module> modules = {{0, -1, 1000, 300, 1.0}};
  answer a = ask(adaptive(1), budget_of(299), modules);
  CHECK_REFUSED(a.status, VELO_ERR_ARGUMENT, "budget.bytes");
  CHECK(last_record().expected.find("at least the least that works: 300 bytes") == 0);
  CHECK(a.chosen[0] == -1);
  CHECK(a.choice.budget == 0);
  CHECK(ask(adaptive(1), budget_of(300), modules).status == VELO_OK);
  velo_recompute_budget budget = budget_of(5000);
  budget.fails = 300;
  CHECK_REFUSED(ask(adaptive(1), budget, modules).status, VELO_ERR_ARGUMENT, "budget.fails");
  CHECK(last_record().expected.find("more than the least") == 0);
}

TEST_CASE("modules and budgets that make no sense are refused by name") {
  const velo_recompute_module good = {0, -1, 1000, 10, 1.0};
  const auto refused = [&](const std::vector<velo_recompute_module>& modules,
                           const char* argument) {
    INFO(argument);
    const answer a = ask(adaptive(2), budget_of(1 << 20), modules);
    CHECK_REFUSED(a.status, VELO_ERR_ARGUMENT, argument);
    CHECK(a.chosen[0] == -1);
  };
  refused({good, {2, -1, 1, 1, 1}}, "modules[1].layer");
  refused({good, {-1, -1, 1, 1, 1}}, "modules[1].layer");
  refused({good, {0, 1, 1, 1, 1}}, "modules[1].parent");  // of itself: a cycle
  refused({good, {0, 5, 1, 1, 1}}, "modules[1].parent");
  refused({good, {1, 0, 1, 1, 1}}, "modules[1].parent");  // of another layer
  refused({good, {0, -2, 1, 1, 1}}, "modules[1].parent");
  refused({good, {0, -1, 1, 1, -1}}, "modules[1].seconds");
  refused({good, {0, -1, 1, 1, std::nan("")}}, "modules[1].seconds");
  refused({good, {0, -1, 1, 1, HUGE_VAL}}, "modules[1].seconds");
  refused({good, {0, -1, 1, 1, 2e18}}, "modules[1].seconds");
  refused({good, {0, 0, 1001, 1, 1}}, "modules[1].bytes");  // a part of more than the whole
  refused({good, {0, -1, ~std::uint64_t{0}, 1, 1}}, "modules[1].bytes");
  refused({good, {0, -1, 1, ~std::uint64_t{0}, 1}}, "modules[1].bytes_input");
  refused({good, {0, -1, INT64_MAX, 1, 1}}, "modules[1].bytes");  // the sum
  std::vector<velo_recompute_module> wide = {{0, -1, 1 << 30, 1, 1}};
  for (int i = 0; i < 24; ++i)  // 2^24 combinations, none of which beats another
    wide.push_back({0, 0, std::uint64_t{1} << i, 0, static_cast<double>(1 << i)});
  refused(wide, "modules[6].parent");

  velo_recompute_budget budget = budget_of(1 << 20);
  budget.fits = 2000;
  budget.fails = 2000;
  CHECK_REFUSED(ask(adaptive(1), budget, {good}).status, VELO_ERR_ARGUMENT, "budget.fits");
  budget = budget_of(std::uint64_t{1} << 63);
  CHECK(ask(adaptive(1), budget, {good}).status == VELO_ERR_ARGUMENT);
  velo_recompute_rule plain = adaptive(1);
  plain.method = VELO_RECOMPUTE_METHOD_BLOCK;
  CHECK_REFUSED(ask(plain, budget_of(1), {good}).status, VELO_ERR_ARGUMENT, "rule.method");
}
