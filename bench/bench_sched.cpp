// bench_sched: what making, proving, pricing, searching and carrying out schedules costs.
//
// Rows: the largest schedule that the goals name (1024 ranks, 4096 micro-batches, 25,165,824
// actions) generated, checked and simulated; all actions of a rank of it, and one action anywhere
// in it, for every kind that is a formula; the search, at 16 ranks and 128 micro-batches. Before
// that, 200 schedules are searched for random costs and caps: none may be longer than a kind that
// fits, half of them must be shorter. The first rows are of executors (sched_executor.hpp). Goals:
// goals.json, schedules. Cost: half a minute.
#include <algorithm>
#include <cmath>
#include <random>
#include <regex>

#include "bench/harness/goals.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "bench/harness/result.hpp"
#include "bench/limits/machine.hpp"
#include "bench/sched_executor.hpp"

namespace velo::bench {
namespace {

constexpr const char* help_text =
    R"(bench_sched: what making, proving, pricing, searching and carrying out schedules costs.

  --filter REGEX  only these of: makespan, executor, random, scale, row, action, search
  --json          one JSON object a row on standard output; all else goes to standard error
  --help

makespan: 1F1B on two processes beside its simulation. executor: an action on two threads. random:
200 searches, none longer than the kinds that fit. scale: 1024 x 4096 made, proven and priced. row,
action: all actions of a rank of it, any one. search: 16 x 128. The exit code is 1 where a goal is
missed.
)";

constexpr int ranks = 1024, microbatches = 4096;

struct order {
  velo_schedule handle = nullptr;
  ~order() { velo_schedule_destroy(handle); }
};

velo_schedule_desc desc_of(velo_schedule_kind kind, int p, int m) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  desc.kind = kind;
  desc.ranks = p;
  desc.microbatches = m;
  return desc;
}

// The makespan and the highest peak; false where there is no such schedule.
bool price(const velo_schedule_desc& desc, double& makespan, double& peak) {
  order made;
  if (velo_schedule_create(&desc, &made.handle) != VELO_OK) return false;
  velo_timeline timeline = nullptr;
  require(velo_schedule_simulate(made.handle, desc.costs, &timeline));
  velo_timeline_stats stats = VELO_TIMELINE_STATS_INIT;
  require(velo_timeline_get_stats(timeline, &stats));
  makespan = stats.makespan;
  peak = 0;
  for (int rank = 0; rank < desc.ranks; ++rank) {
    velo_timeline_rank of = VELO_TIMELINE_RANK_INIT;
    require(velo_timeline_get_rank(timeline, rank, &of));
    peak = std::max(peak, of.peak_activations);
  }
  velo_timeline_destroy(timeline);
  return true;
}

void make_prove_price() {
  const velo_schedule_desc desc = desc_of(VELO_SCHEDULE_ZBV, ranks, microbatches);
  order made;
  require(velo_schedule_create(&desc, &made.handle));
  std::int64_t violations = 0;
  require(velo_schedule_check(made.handle, &violations));
  velo_timeline timeline = nullptr;
  require(velo_schedule_simulate(made.handle, nullptr, &timeline));
  velo_timeline_stats stats = VELO_TIMELINE_STATS_INIT;
  require(velo_timeline_get_stats(timeline, &stats));
  velo_timeline_destroy(timeline);
  if (violations == 0 && stats.makespan == 3.0 * microbatches + (ranks - 1) / 2.0) return;
  std::fprintf(stderr, "bench_sched: makespan %.17g, %lld violations\n", stats.makespan,
               static_cast<long long>(violations));
  std::exit(2);
}

result timed(const char* name, const char* shape, const std::function<void()>& call, int times,
             double budget) {
  measuring how;
  how.budget = budget;
  how.warm = true;
  const outcome measured = measure({{"velo", [&](int) { call(); }}}, how);
  result row;
  row.name = name;
  row.shape = shape;
  row.unit = "s";
  row.p25s.push_back(measured.timings[0].p25 / times);
  row.mins.push_back(measured.timings[0].min / times);
  row.rates.push_back(1 / row.p25s[0]);
  row.limits.push_back(0);
  return row;
}

struct named_kind {
  const char* name;
  velo_schedule_kind kind;
};
constexpr named_kind formulas[] = {{"gpipe", VELO_SCHEDULE_GPIPE},
                                   {"1f1b", VELO_SCHEDULE_1F1B},
                                   {"interleaved", VELO_SCHEDULE_INTERLEAVED},
                                   {"zb1p", VELO_SCHEDULE_ZB1P},
                                   {"zbv", VELO_SCHEDULE_ZBV},
                                   {"dualpipev", VELO_SCHEDULE_DUALPIPEV}};

void add_formulas(std::vector<result>& rows, bool whole, bool single) {
  for (const named_kind& of : formulas) {
    const velo_schedule_desc desc = desc_of(of.kind, ranks, microbatches);
    order made;
    require(velo_schedule_create(&desc, &made.handle));
    std::int64_t length = 0;
    require(velo_schedule_get_length(made.handle, ranks / 3, &length));
    std::vector<velo_action> all(static_cast<std::size_t>(length));
    if (whole)
      rows.push_back(timed(
          "row", of.name,
          [&] {
            require(velo_schedule_get_actions(made.handle, ranks / 3, 0, length, all.data()));
          },
          1, 1));
    if (!single) continue;
    std::mt19937_64 random(1);
    std::vector<std::int64_t> places(4096);
    for (std::int64_t& at : places) at = static_cast<std::int64_t>(random() % length);
    rows.push_back(timed(
        "action", of.name,
        [&] {
          velo_action one;
          for (const std::int64_t at : places)
            require(velo_schedule_get_actions(made.handle, static_cast<int>(at % ranks),
                                              at % (length / 2), 1, &one));
        },
        static_cast<int>(places.size()), 1));
  }
}

// 200 searches beside the kinds that S3 names; how many were shorter than all of these.
bool search_at_random() {
  constexpr struct {
    velo_schedule_kind kind;
    bool has_cap;
  } kinds[] = {{VELO_SCHEDULE_ZBH2, true},    {VELO_SCHEDULE_ZBV_GREEDY, true},
               {VELO_SCHEDULE_VHALF, false},  {VELO_SCHEDULE_VMIN, false},
               {VELO_SCHEDULE_1F1B_V, false}, {VELO_SCHEDULE_INTERLEAVED, false}};
  constexpr int cases = 200;
  std::mt19937 random(7);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  int kept = 0, shorter = 0;
  for (int i = 0; i < cases; ++i) {
    const int p = 2 + static_cast<int>(random() % 15),
              m = p + static_cast<int>(random() % (7 * p + 1));
    velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT;
    costs.forward = between(0.5, 2), costs.input = between(0.5, 2);
    costs.weight = between(0.5, 2), costs.latency = between(0, 0.3);
    const int least = (p + 2) / 3 + 1;
    const double cap = std::min(2.0 * p, std::floor(between(least, 2 * p + 1)));
    double best = INFINITY, makespan = 0, peak = 0;
    for (const auto& of : kinds) {
      velo_schedule_desc desc = desc_of(of.kind, p, m);
      desc.costs = &costs;
      desc.cap = of.has_cap ? cap : 0;
      if (price(desc, makespan, peak) && peak <= cap) best = std::min(best, makespan);
    }
    velo_schedule_desc desc = desc_of(VELO_SCHEDULE_AUTO, p, m);
    desc.costs = &costs;
    desc.cap = cap;
    if (!price(desc, makespan, peak) || peak > cap) continue;
    kept += makespan <= best * (1 + 1e-12) ? 1 : 0;
    shorter += makespan < best * (1 - 1e-9) ? 1 : 0;
  }
  std::fprintf(stderr, "search: %d of %d never longer than a kind that fits, %d shorter\n", kept,
               cases, shorter);
  return kept == cases && 2 * shorter >= cases;
}

result searched_once() {
  velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT;
  costs.input = 1.2, costs.weight = 0.8, costs.latency = 0.1;
  velo_schedule_desc desc = desc_of(VELO_SCHEDULE_AUTO, 16, 128);
  desc.costs = &costs;
  desc.cap = 12;
  return timed(
      "search", "16x128",
      [&] {
        order found;
        require(velo_schedule_create(&desc, &found.handle));
      },
      1, 3);
}

void print(const result& row, bool json) {
  if (json)
    print_json(stdout, row);
  else if (row.limits[0] > 0)
    std::printf("%-8s %-16s %12.1f %% of the simulated speed\n", row.name.c_str(),
                row.shape.c_str(), 100 * row.share());
  else
    std::printf("%-8s %-16s %12.1f ns\n", row.name.c_str(), row.shape.c_str(), 1e9 * row.p25s[0]);
}

int run(const options& given) {
  const machine on = identify_machine();
  const std::regex filter(given.filter);
  const auto wanted = [&](const char* name) { return std::regex_search(name, filter); };
  std::vector<result> rows;
  // Before this thread is bound: they have threads and processes of their own.
  if (wanted("makespan")) rows.push_back(achieved_makespan());
  if (wanted("executor")) rows.push_back(executor_overhead());
  pin_thread(on.cpus[0]);
  bool all = !wanted("random") || search_at_random();
  if (wanted("scale")) rows.push_back(timed("scale", "zbv 1024x4096", &make_prove_price, 1, 8));
  if (wanted("row") || wanted("action")) add_formulas(rows, wanted("row"), wanted("action"));
  if (wanted("search")) rows.push_back(searched_once());
  for (const result& row : rows) print(row, given.json);
  const judgement j = judge(VELO_BENCH_FOLDER "/goals.json", "schedules", on.kind, rows);
  print_judgement(stderr, j);
  for (const verdict& v : j.verdicts) all = all && v.fraction >= 1;
  return all ? 0 : 1;
}

}  // namespace
}  // namespace velo::bench

int main(int count, char** arguments) {
  return velo::bench::run(velo::bench::parse_options(count, arguments, velo::bench::help_text));
}
