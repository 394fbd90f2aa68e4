// Planned swaps: stalls known by hand, plans executed by a clock of the test's own, bounds kept.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "memory/plan/solver/random.hpp"
#include "tests/comma_locale.hpp"
#include "tests/memory/pool/pools.hpp"
#include "tests/refusals.hpp"
#include "velo/plan.h"

using velo::memory::plan_random;

namespace {

// A plan with computing of one second that ends at times 9, 19, 29 ..
struct step {
  velo_plan plan = nullptr;
  struct buffer {
    std::int64_t first, last;  // stages
    std::int64_t bytes;
    std::vector<std::int64_t> uses;  // stages
  };
  std::vector<buffer> buffers;
  std::int64_t stages;

  explicit step(std::int64_t count) : stages(count) {
    REQUIRE(velo_plan_create(nullptr, &plan) == VELO_OK);
    for (std::int64_t s = 0; s < stages; ++s)
      REQUIRE(velo_plan_add_work(plan, 10 * s + 9, 1) == VELO_OK);
  }
  ~step() { velo_plan_destroy(plan); }
  step(const step&) = delete;
  step& operator=(const step&) = delete;

  void add(std::int64_t first, std::int64_t last, std::int64_t bytes,
           const std::vector<std::int64_t>& uses, velo_access access = VELO_ACCESS_WRITE) {
    std::int64_t index = -1;
    REQUIRE(velo_plan_add(plan, 10 * first + 2, 10 * last + 8, bytes, &index) == VELO_OK);
    for (const std::int64_t s : uses)
      REQUIRE(velo_plan_add_use(plan, index, 10 * s + 5, access) == VELO_OK);
    buffers.push_back({first, last, bytes, uses});
    buffers.back().uses.push_back(first);
  }

  velo_swap_options options(std::uint64_t budget, double rate) const {
    velo_swap_options o = VELO_SWAP_OPTIONS_INIT;
    o.budget = budget;
    o.out_bytes_per_second = o.in_bytes_per_second = rate;
    o.least_bytes = 0;
    return o;
  }
  velo_plan_swap_stats solve(const velo_swap_options& o) const {
    REQUIRE(velo_plan_solve_swaps(plan, &o) == VELO_OK);
    CHECK(stats().solved == 1);
    return stats();
  }
  velo_plan_swap_stats stats() const {
    velo_plan_swap_stats now = VELO_PLAN_SWAP_STATS_INIT;
    REQUIRE(velo_plan_get_swap_stats(plan, &now) == VELO_OK);
    return now;
  }
  std::vector<velo_plan_swap> transfers() const {
    std::vector<velo_plan_swap> all(stats().transfers, VELO_PLAN_SWAP_INIT);
    for (std::size_t i = 0; i < all.size(); ++i)
      REQUIRE(velo_plan_get_swap(plan, static_cast<std::int64_t>(i), &all[i]) == VELO_OK);
    return all;
  }
};

// Five stages: a buffer that is used in the first and the last, and one in between.
struct two_buffers : step {
  two_buffers() : step(5) {
    add(0, 4, 100, {4});
    add(2, 2, 100, {});
  }
};

// Runs the transfers at their planned seconds and each stage as soon as it can begin; how long the
// stages waited in all. Whatever a plan may not do fails.
double executed(const step& of, const std::vector<velo_plan_swap>& transfers, double budget) {
  double last_end[2] = {0, 0};
  std::map<std::int64_t, bool> away;
  for (const velo_plan_swap& t : transfers) {
    REQUIRE(t.begin >= last_end[t.action]);  // one at a time, each way
    last_end[t.action] = t.end;
    REQUIRE(away[t.buffer] == (t.action == 0));
    away[t.buffer] = t.action == 1;
  }
  // Whether the memory of buffer i is taken at a time, and whether the buffer can be used.
  const auto is_taken = [&](std::int64_t i, double time) {
    bool taken = true;
    for (const velo_plan_swap& t : transfers) {
      if (t.buffer != i) continue;
      if (t.action == 1 && t.end <= time) taken = false;
      if (t.action == 0 && t.begin <= time) taken = true;
    }
    return taken;
  };
  const auto is_usable = [&](std::int64_t i, double time) {
    bool usable = true;
    for (const velo_plan_swap& t : transfers) {
      if (t.buffer != i) continue;
      if (t.action == 1 && t.begin <= time) usable = false;
      if (t.action == 0 && t.end <= time) usable = true;
    }
    return usable;
  };
  std::vector<double> moments = {0};
  for (const velo_plan_swap& t : transfers) moments.push_back(t.end);
  std::sort(moments.begin(), moments.end());
  double now = 0, waited = 0;
  for (std::int64_t s = 0; s < of.stages; ++s) {
    const auto may_begin = [&](double time) {
      double resident = 0;
      for (std::size_t i = 0; i < of.buffers.size(); ++i) {
        const step::buffer& b = of.buffers[i];
        if (b.first > s || b.last < s) continue;
        const auto index = static_cast<std::int64_t>(i);
        const bool used = std::count(b.uses.begin(), b.uses.end(), s) > 0;
        if (used && b.first != s && !is_usable(index, time)) return false;
        if (is_taken(index, time)) resident += static_cast<double>(b.bytes);
      }
      return resident <= budget;
    };
    double begin = now;
    for (std::size_t m = 0; !may_begin(begin); ++m) {
      REQUIRE(m < moments.size());
      begin = std::max(now, moments[m]);
    }
    waited += begin - now;
    now = begin + 1;
  }
  return waited;
}

// Layers forward and back, whose kept buffers are used again on the way back; some used in between.
void fill(step& to, std::uint64_t seed) {
  plan_random random(seed);
  const std::int64_t last = to.stages - 1;
  for (std::int64_t s = 0; s < to.stages / 2; ++s) {
    for (std::uint64_t x = 1 + random.below(3); x > 0; --x) {
      std::vector<std::int64_t> uses = {last - s};
      if (random.below(4) == 0 && s + 1 < last - s)
        uses.push_back(s + 1 + static_cast<std::int64_t>(random.below(last - 2 * s - 1)));
      to.add(s, last - s, static_cast<std::int64_t>(50 + random.below(100)), uses,
             random.below(2) == 0 ? VELO_ACCESS_WRITE : VELO_ACCESS_READ);
    }
  }
  for (std::int64_t s = 0; s < to.stages; ++s)
    to.add(s, s, static_cast<std::int64_t>(20 + random.below(60)), {});
}

}  // namespace

TEST_CASE("a buffer goes away and comes back beside the computing when there is time") {
  const two_buffers s;
  const velo_plan_swap_stats in_time = s.solve(s.options(100, 100));
  CHECK(in_time.stall_seconds == 0);
  CHECK(in_time.bound_seconds == 0);
  CHECK(in_time.compute_seconds == 5);
  CHECK(in_time.bytes_peak == 100);
  CHECK(in_time.bytes_live == 200);
  const std::vector<velo_plan_swap> all = s.transfers();
  REQUIRE(all.size() == 2);
  CHECK((all[0].action == 1 && all[0].buffer == 0 && all[0].begin == 1 && all[0].end == 2));
  CHECK((all[0].after == 9 && all[0].before == 49));
  CHECK((all[1].action == 0 && all[1].begin == 3 && all[1].end == 4 && all[1].after == 29));
}

TEST_CASE("a slow link stalls the step by what it lacks, and the bound says as much") {
  const two_buffers s;
  const velo_plan_swap_stats late = s.solve(s.options(100, 50));  // two seconds each way
  CHECK(late.stall_seconds == Approx(2));
  CHECK(late.bound_seconds == Approx(2));
  velo_swap_options o = s.options(100, 50);
  o.in_bytes_per_second = 100;
  CHECK(s.solve(o).stall_seconds == Approx(1));
}

TEST_CASE("what is read after it was written has to be stored all the same, and the bound knows") {
  step s(6);
  s.add(0, 5, 100, {1, 5}, VELO_ACCESS_READ);
  s.add(3, 3, 100, {});
  const velo_plan_swap_stats late = s.solve(s.options(100, 25));  // four seconds each way
  CHECK(late.bound_seconds == Approx(2 + 3));  // beside stages 1 and 2, and beside stage 4
  CHECK(late.stall_seconds == Approx(3 + 3));  // in stage 1 it is in use
}

TEST_CASE("what has not changed since it was stored is not stored again") {
  for (const velo_access access : {VELO_ACCESS_READ, VELO_ACCESS_WRITE}) {
    step s(9);
    s.add(0, 8, 100, {4, 8}, access);
    s.add(2, 2, 100, {});
    s.add(6, 6, 100, {});
    const velo_plan_swap_stats stats = s.solve(s.options(100, 100));
    CHECK(stats.transfers == 4);
    CHECK(stats.bytes_in == 200);
    CHECK(stats.bytes_out == (access == VELO_ACCESS_READ ? 100 : 200));
    CHECK(stats.stall_seconds == 0);
  }
}

TEST_CASE("the buffer whose next use lies furthest goes") {
  step s(8);
  s.add(0, 7, 100, {5});
  s.add(0, 7, 100, {7});
  s.add(0, 7, 100, {6});
  s.add(3, 3, 100, {});
  s.solve(s.options(300, 1000));
  REQUIRE(!s.transfers().empty());
  CHECK(s.transfers()[0].buffer == 1);
}

TEST_CASE("plans can be executed as planned, and none stalls less than the bound") {
  int solved = 0;
  double over = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    step s(12 + 2 * static_cast<std::int64_t>(seed % 10));
    fill(s, seed);
    for (const velo_swap_policy policy : {VELO_SWAP_FURTHEST, VELO_SWAP_SMART}) {
      for (const double rate : {40.0, 150.0}) {
        velo_swap_options o = s.options(900, rate);
        o.policy = policy;
        INFO("seed " << seed << " policy " << policy << " rate " << rate);
        const velo_plan_swap_stats stats = s.solve(o);
        CHECK(stats.bytes_peak <= o.budget);
        CHECK(stats.stall_seconds >= stats.bound_seconds - 1e-9);
        const double waited = executed(s, s.transfers(), 900);
        CHECK(waited == Approx(stats.stall_seconds).margin(1e-9));
        if (policy == VELO_SWAP_FURTHEST && stats.bound_seconds > 5) {
          ++solved;
          over += stats.stall_seconds / stats.bound_seconds;
        }
      }
    }
  }
  REQUIRE(solved > 20);
  CHECK(over / solved < 1.25);
}

TEST_CASE("what links bring too late is dropped and made again, when that takes less") {
  for (const double rate : {50.0, 100.0}) {
    step s(5);
    s.add(0, 4, 100, {4}, VELO_ACCESS_READ);
    s.add(2, 2, 100, {});
    velo_swap_options o = s.options(100, rate);
    o.policy = VELO_SWAP_JOINT;
    const velo_plan_swap_stats stats = s.solve(o);
    const std::vector<velo_plan_swap> all = s.transfers();
    REQUIRE(all.size() == 2);
    CHECK(stats.bytes_peak == 100);
    if (rate == 100) {  // there is time for the links
      CHECK((stats.stall_seconds == 0 && stats.make_seconds == 0));
      CHECK((all[0].action == VELO_SWAP_ACTION_OUT && all[1].action == VELO_SWAP_ACTION_IN));
      continue;
    }
    CHECK((stats.stall_seconds == 1 && stats.make_seconds == 1));
    CHECK((all[0].action == VELO_SWAP_ACTION_DROP && all[0].begin == 2 && all[0].end == 2));
    CHECK((all[1].action == VELO_SWAP_ACTION_MAKE && all[1].begin == 4 && all[1].end == 5));
  }
}

TEST_CASE("what was written since, or is made from what was, is not dropped") {
  step s(6);
  s.add(0, 5, 100, {1, 5});  // written in stage 1
  s.add(3, 3, 100, {});
  velo_swap_options o = s.options(100, 20);
  const double alone = s.solve(o).stall_seconds;
  o.policy = VELO_SWAP_JOINT;
  CHECK(s.solve(o).stall_seconds == alone);
  CHECK(s.solve(o).make_seconds == 0);

  step two(7);
  two.add(0, 6, 50, {1, 6}, VELO_ACCESS_READ);
  two.add(1, 5, 100, {5}, VELO_ACCESS_READ);  // made from the first
  two.add(3, 3, 100, {});
  o = two.options(150, 20);
  o.policy = VELO_SWAP_JOINT;
  const velo_plan_swap_stats stats = two.solve(o);
  CHECK((stats.make_seconds == 1 && stats.stall_seconds == 1));
  REQUIRE(velo_plan_add_use(two.plan, 0, 25, VELO_ACCESS_WRITE) == VELO_OK);
  CHECK(two.solve(o).make_seconds == 0);
}

TEST_CASE("a joint plan keeps to its budget and stalls no more than one that only swaps") {
  int less = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    step s(12 + 2 * static_cast<std::int64_t>(seed % 10));
    fill(s, seed);
    velo_swap_options o = s.options(900, 40);
    double alone = s.solve(o).stall_seconds;
    o.policy = VELO_SWAP_SMART;
    alone = std::min(alone, s.solve(o).stall_seconds);
    o.policy = VELO_SWAP_JOINT;
    INFO("seed " << seed);
    const velo_plan_swap_stats stats = s.solve(o);
    CHECK(stats.bytes_peak <= o.budget);
    CHECK(stats.stall_seconds <= alone);
    CHECK(stats.make_seconds <= stats.stall_seconds + 1e-9);
    less += stats.stall_seconds < 0.9 * alone;
    std::map<std::int64_t, velo_swap_action> last;
    double making = 0;
    for (const velo_plan_swap& t : s.transfers()) {  // what goes comes back as it went
      const bool returns = t.action == VELO_SWAP_ACTION_IN || t.action == VELO_SWAP_ACTION_MAKE;
      const auto before = last.find(t.buffer);
      const bool gone = before != last.end() && (before->second == VELO_SWAP_ACTION_OUT ||
                                                 before->second == VELO_SWAP_ACTION_DROP);
      CHECK(gone == returns);
      if (t.action == VELO_SWAP_ACTION_IN) CHECK(before->second == VELO_SWAP_ACTION_OUT);
      if (t.action == VELO_SWAP_ACTION_MAKE) making += t.end - t.begin;
      last[t.buffer] = t.action;
    }
    CHECK(making == Approx(stats.make_seconds).margin(1e-9));
  }
  CHECK(less >= 10);
}

TEST_CASE(
    "a budget that a stage does not fit is refused with what is needed, and changes nothing") {
  step s(5);
  s.add(0, 4, 100, {2, 4});
  s.add(2, 2, 150, {});
  s.solve(s.options(250, 100));
  velo_swap_options o = s.options(249, 100);
  CHECK(velo_plan_solve_swaps(s.plan, &o) == VELO_ERR_ARGUMENT);
  const velo::testing::call_record why = velo::testing::last_record();
  CHECK(why.argument == "options.budget");
  CHECK(why.expected == "at least 250 bytes, needed at once at time 29");
  CHECK(s.stats().solved == 1);
}

TEST_CASE("small buffers stay, memory is released and taken in the stages asked for") {
  step s(10);
  s.add(0, 9, 100, {9});
  s.add(0, 9, 99, {9});
  s.add(5, 5, 50, {});
  velo_swap_options o = s.options(200, 100);
  o.policy = VELO_SWAP_SMART;
  o.least_bytes = 100;
  o.release_stages = 4;
  o.prefetch_stages = 2;
  CHECK(s.solve(o).stall_seconds == 0);
  const std::vector<velo_plan_swap> all = s.transfers();
  REQUIRE(all.size() == 2);
  CHECK(all[0].buffer == 0);
  CHECK(all[1].begin >= 7);
  o.release_stages = 6;  // after the stage that needs the room: released when it must be
  CHECK(s.solve(o).stall_seconds == 0);
  o.least_bytes = 101;
  CHECK(velo_plan_solve_swaps(s.plan, &o) == VELO_ERR_ARGUMENT);
}

TEST_CASE("a plan without computing has a stage for each time") {
  velo_plan plan = nullptr;
  REQUIRE(velo_plan_create(nullptr, &plan) == VELO_OK);
  const std::string log =
      "Thread,Time,Action,Pointer,Size,Stream\n0,0,allocate,a,100,0\n0,1,allocate,b,100,0\n"
      "0,2,free,b,100,0\n0,3,free,a,100,0\n";
  REQUIRE(velo_plan_read(plan, VELO_PLAN_RMM_LOG, log.data(), log.size()) == VELO_OK);
  velo_swap_options o = VELO_SWAP_OPTIONS_INIT;
  o.budget = 200;
  o.seconds = 3;
  REQUIRE(velo_plan_solve_swaps(plan, &o) == VELO_OK);
  velo_plan_swap_stats stats = VELO_PLAN_SWAP_STATS_INIT;
  REQUIRE(velo_plan_get_swap_stats(plan, &stats) == VELO_OK);
  CHECK(stats.compute_seconds == Approx(3));
  CHECK(stats.transfers == 0);
  REQUIRE(velo_plan_add_work(plan, 1, 0.5) == VELO_OK);  // the plan has changed
  REQUIRE(velo_plan_get_swap_stats(plan, &stats) == VELO_OK);
  CHECK(stats.solved == 0);
  velo_plan_destroy(plan);
}

TEST_CASE("swaps are written as JSON, and only when there are some") {
  const two_buffers s;
  CHECK(velo_plan_write(s.plan, VELO_PLAN_SWAPS, nullptr, 0, nullptr) == VELO_ERR_STATE);
  s.solve(s.options(100, 100));
  char text[1024];
  REQUIRE(velo_plan_write(s.plan, VELO_PLAN_SWAPS, text, sizeof text, nullptr) == VELO_OK);
  CHECK(std::string(text) ==
        "{\"policy\":\"furthest\",\"budget\":100,\"bytes_live\":200,\"bytes_peak\":100,"
        "\"bytes_out\":100,\"bytes_in\":100,\"compute_seconds\":5,\"stall_seconds\":0,"
        "\"bound_seconds\":0,\"transfers\":[\n"
        "{\"action\":\"out\",\"buffer\":0,\"after\":9,\"before\":49,\"begin\":1,\"end\":2,\"stay\":"
        "0},\n"
        "{\"action\":\"in\",\"buffer\":0,\"after\":29,\"before\":49,\"begin\":3,\"end\":4,\"stay\":"
        "2}\n]}\n");
}

TEST_CASE("swaps are the same text under any locale") {
  const two_buffers s;
  s.solve(s.options(100, 30));  // 3.33 s a transfer
  char plain[1024], text[1024];
  REQUIRE(velo_plan_write(s.plan, VELO_PLAN_SWAPS, plain, sizeof plain, nullptr) == VELO_OK);
  const velo::testing::comma_locale comma;
  REQUIRE(velo_plan_write(s.plan, VELO_PLAN_SWAPS, text, sizeof text, nullptr) == VELO_OK);
  CHECK(std::string(text) == plain);
}

TEST_CASE("swap options that make no sense are named") {
  const step s(2);
  using options = velo_swap_options;
  velo::testing::check_refusals(
      s.options(100, 100), [&](const options& o) { return velo_plan_solve_swaps(s.plan, &o); },
      {{[](options& o) { o.policy = 3; }, VELO_ERR_ARGUMENT, "options.policy"},
       {[](options& o) { o.budget = 0; }, VELO_ERR_ARGUMENT, "options.budget"},
       {[](options& o) { o.out_bytes_per_second = 0; }, VELO_ERR_ARGUMENT,
        "options.out_bytes_per_second"},
       {[](options& o) { o.in_bytes_per_second = std::nan(""); }, VELO_ERR_ARGUMENT,
        "options.in_bytes_per_second"},
       {[](options& o) { o.seconds = -1; }, VELO_ERR_ARGUMENT, "options.seconds"},
       {[](options& o) { o.release_stages = -1; }, VELO_ERR_ARGUMENT, "options.release_stages"},
       {[](options& o) { o.prefetch_stages = -1; }, VELO_ERR_ARGUMENT, "options.prefetch_stages"}});
  velo_plan_swap swap = VELO_PLAN_SWAP_INIT;
  CHECK(velo_plan_get_swap(s.plan, 0, &swap) == VELO_ERR_ARGUMENT);
}
