// bench_memory: nanoseconds for an allocation and its free, of velo's pool and of the allocators
// that programs use.
//
// Rows: pairs of one size, untouched and with a byte of every page written; random mixes; the steps
// of recorded traces, over and over; blocks that another thread frees; what the trace adaptor and a
// pool's history add to a call, and what an event costs in a snapshot. Pairs and the mix with one
// thread and with two at once. All allocators take turns within a row, each warm (protocol.hpp).
// Goals: goals.json, memory. Cost: two minutes a pass, seconds with --quick.
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "bench/harness/goals.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/result.hpp"
#include "bench/limits/machine.hpp"
#include "bench/memory/recorded_step.hpp"
#include "bench/memory/work.hpp"

namespace velo::bench {
namespace {

constexpr const char* help_text =
    R"(bench_memory: velo's pool beside glibc's malloc, mimalloc, jemalloc and tcmalloc.

  --filter REGEX     only rows whose 'name shape residency' matches
  --threads LIST     thread counts, 1 and 2 by default: --threads 1
  --passes N         how often the whole list is measured; a goal must be reached in each (3)
  --budget SECONDS   time for a row in a pass (1.0)
  --traces DIR       recorded traces (RMM's log, *.csv), a row `step` each; else one of a decoder
  --quick            one pass, a short budget: shows that all rows run
  --json             one JSON object a row on standard output; all else goes to standard error
  --list             print the rows and exit
  --help

A row: nanoseconds at p25 for an allocation and its free, lower is better; ratio = the best peer /
velo.
)";

struct memory_row {
  std::string name, shape, residency;
  std::size_t bytes;
};

std::vector<memory_row> all_rows(const std::vector<recorded_step>& steps) {
  struct {
    const char* shape;
    std::size_t bytes;
  } static constexpr sizes[] = {{"64 B", 64},        {"512 B", 512},     {"4 KiB", 4096},
                                {"64 KiB", 1 << 16}, {"1 MiB", 1 << 20}, {"8 MiB", 1 << 23},
                                {"64 MiB", 1 << 26}, {"1 GiB", 1 << 30}};
  std::vector<memory_row> rows;
  for (const char* residency : {"untouched", "touched"})
    for (const auto& s : sizes) rows.push_back({"pair", s.shape, residency, s.bytes});
  rows.push_back({"mix", "512 B to 4 MiB", "untouched", 0});
  for (const char* residency : {"untouched", "first byte"})
    rows.push_back({"mix", "512 B to 64 MiB", residency, std::size_t{64} << 20});
  for (const recorded_step& s : steps) rows.push_back({"step", s.name, "untouched", 0});
  for (const auto& s : sizes)
    if (s.bytes <= 1 << 20) rows.push_back({"relay", s.shape, "untouched", s.bytes});
  rows.push_back({"trace", "512 B", "untouched", 512});
  rows.push_back({"history", "512 B", "untouched", 512});
  for (const char* form : {"json", "pickle", "svg"})
    rows.push_back({"snapshot", form, "untouched", 512});
  return rows;
}

// The work that one call of a candidate repeats, and the number that a figure is divided by.
struct measured_calls {
  std::vector<candidate> all;
  int count = 1;
};

class bench {
 public:
  bench(options o, std::vector<peer_allocator> peers)
      : options_(std::move(o)),
        out_(options_.json ? stderr : stdout),
        machine_(identify_machine()),
        peers_(std::move(peers)),
        steps_(steps_in(options_.traces)) {}

  int run();

 private:
  template <class F>
  void for_each_allocator(velo_pool pool, F&& f) {  // f(name, calls)
    f(std::string("velo"), pool_calls{pool});
    for (const peer_allocator& p : peers_) f(p.name, peer_calls{p.allocate, p.free});
  }
  measured_calls pairs_of(const memory_row& row, int threads, velo_pool pool);
  measured_calls mixes_of(const memory_row& row, int threads, velo_pool pool);
  measured_calls steps_of(const memory_row& row, velo_pool pool);
  measured_calls relays_of(const memory_row& row, velo_pool pool);
  bool measure_row(const memory_row& row, int threads);
  void measure_trace(const memory_row& row);
  void measure_history(const memory_row& row);
  void measure_snapshot(const memory_row& row, velo_snapshot_format form);
  template <class With, class Without>
  void measure_events(const memory_row& row, With&& with, Without&& without);
  result& result_of(const memory_row& row, int threads);
  void print(const result& r) const;

  options options_;
  FILE* out_;
  machine machine_;
  std::vector<peer_allocator> peers_;
  std::vector<recorded_step> steps_;
  std::unique_ptr<partner> partner_;
  std::vector<result> results_;
};

result& bench::result_of(const memory_row& row, int threads) {
  for (result& r : results_)
    if (r.name == row.name && r.shape == row.shape && r.residency == row.residency &&
        r.threads == threads)
      return r;
  result& made = results_.emplace_back();
  made.name = row.name, made.shape = row.shape, made.residency = row.residency;
  made.threads = threads, made.unit = "ns";
  return made;
}

measured_calls bench::pairs_of(const memory_row& row, int threads, velo_pool pool) {
  measured_calls made;
  const bool touched = row.residency == "touched";
  const std::size_t pages = touched ? row.bytes / 4096 : 0;
  made.count = static_cast<int>(256 / (pages / 16 + 1)) + 1;
  // To start the partner and to wait for it takes as long as a hundred pairs.
  if (threads > 1 && pages == 0 && row.bytes <= 1 << 23) made.count *= 32;
  for_each_allocator(pool, [&](const std::string& name, auto calls) {
    made.all.push_back({name, [=, count = made.count, bytes = row.bytes](int) {
                          const auto work = [=] { run_pairs(calls, bytes, touched, count); };
                          if (threads > 1) partner_->start(work);
                          work();
                          if (threads > 1) partner_->wait();
                        }});
  });
  return made;
}

measured_calls bench::mixes_of(const memory_row& row, int threads, velo_pool pool) {
  measured_calls made;
  const int powers = row.bytes != 0 ? 17 : 13;
  const bool writes = row.residency == "first byte";
  made.count = threads > 1 ? 512 * 32 : 512;  // as pairs of two threads are
  for_each_allocator(pool, [&](const std::string& name, auto calls) {
    auto mine = std::make_shared<random_mix<decltype(calls)>>(calls, 1, powers, writes);
    auto other = threads > 1
                     ? std::make_shared<random_mix<decltype(calls)>>(calls, 2, powers, writes)
                     : nullptr;
    made.all.push_back({name, [=, count = made.count](int) {
                          if (other != nullptr) partner_->start([=] { other->run(count); });
                          mine->run(count);
                          if (other != nullptr) partner_->wait();
                        }});
  });
  return made;
}

measured_calls bench::steps_of(const memory_row& row, velo_pool pool) {
  const auto step = std::find_if(steps_.begin(), steps_.end(),
                                 [&](const recorded_step& s) { return s.name == row.shape; });
  measured_calls made;
  made.count = static_cast<int>(step->sizes.size());
  for_each_allocator(pool, [&](const std::string& name, auto calls) {
    auto own = std::make_shared<replayed_step<decltype(calls)>>(calls, *step);
    made.all.push_back({name, [own](int) { own->run(); }});
  });
  return made;
}

measured_calls bench::relays_of(const memory_row& row, velo_pool pool) {
  measured_calls made;
  for_each_allocator(pool, [&](const std::string& name, auto calls) {
    using relayed = relay<decltype(calls)>;
    auto own = std::make_shared<relayed>(calls, *partner_, row.bytes);
    made.count = static_cast<int>(relayed::batch);
    made.all.push_back({name, [own](int) { own->run(); }});
  });
  return made;
}

// The cost of a call: half of what a pair costs more.
template <class With, class Without>
void bench::measure_events(const memory_row& row, With&& with, Without&& without) {
  constexpr int count = 4096;
  const auto pairs = [&](const auto& calls) {
    return [calls, bytes = row.bytes](int) { run_pairs(calls, bytes, false, count); };
  };
  measuring how;
  how.budget = options_.budget;
  const outcome measured = measure({{"with", pairs(with)}, {"without", pairs(without)}}, how);
  result& into = result_of(row, 1);
  const timing &all = measured.timings[0], &plain = measured.timings[1];
  into.p25s.push_back((all.p25 - plain.p25) / (2 * count));
  into.mins.push_back((all.min - plain.min) / (2 * count));
  into.rates.push_back(1 / into.p25s.back());
}

void bench::measure_trace(const memory_row& row) {
  velo_pool pool = nullptr;
  require(velo_pool_create(nullptr, &pool));
  velo_allocator below = VELO_ALLOCATOR_INIT, above = VELO_ALLOCATOR_INIT;
  require(velo_pool_allocator(pool, &below));
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.kind = VELO_ADAPTOR_TRACE;
  desc.upstream = &below;
  // A trace goes to an ordinary file alone. What the file costs is not the adaptor's: once made,
  // its descriptor, the lowest that was free, becomes one of /dev/null.
  char folder[] = "/tmp/velo-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) std::abort();
  const std::string path = std::string(folder) + "/trace.csv";
  desc.path = path.c_str();
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), lowest = dup(nowhere);
  close(lowest);
  velo_adaptor adaptor = nullptr;
  require(velo_adaptor_create(&desc, &adaptor));
  if (dup2(nowhere, lowest) != lowest) std::abort();
  close(nowhere), unlink(path.c_str()), rmdir(folder);
  require(velo_adaptor_allocator(adaptor, &above));
  measure_events(row, allocator_calls{above}, allocator_calls{below});
  velo_adaptor_destroy(adaptor);
  velo_pool_destroy(pool);
}

constexpr std::uint64_t most_events = 1'000'000;

void bench::measure_history(const memory_row& row) {
  velo_pool recorded = nullptr, plain = nullptr;
  require(velo_pool_create(nullptr, &recorded));
  require(velo_pool_create(nullptr, &plain));
  require(velo_pool_record(recorded, most_events));
  measure_events(row, pool_calls{recorded}, pool_calls{plain});
  velo_pool_destroy(plain);
  velo_pool_destroy(recorded);
}

// A history that is full, given out into memory: nanoseconds an event.
void bench::measure_snapshot(const memory_row& row, velo_snapshot_format form) {
  velo_pool pool = nullptr;
  require(velo_pool_create(nullptr, &pool));
  require(velo_pool_record(pool, most_events));
  run_pairs(pool_calls{pool}, row.bytes, false, most_events / 2);
  std::uint64_t needed = 0;
  require(velo_pool_snapshot(pool, form, nullptr, 0, &needed));
  std::vector<char> text(needed + 4096);
  measuring how;
  how.budget = options_.budget;
  const outcome measured = measure(
      {{"velo",
        [&](int) { require(velo_pool_snapshot(pool, form, text.data(), text.size(), nullptr)); }}},
      how);
  velo_pool_destroy(pool);
  result& into = result_of(row, 1);
  into.p25s.push_back(measured.timings[0].p25 / most_events);
  into.mins.push_back(measured.timings[0].min / most_events);
  into.rates.push_back(1 / into.p25s.back());
}

bool bench::measure_row(const memory_row& row, int threads) {
  if (row.name == "trace" || row.name == "history" || row.name == "snapshot") {
    if (threads > 1) return false;
    if (row.name == "trace") measure_trace(row);
    if (row.name == "history") measure_history(row);
    if (row.name == "snapshot")
      measure_snapshot(row, row.shape == "json"     ? VELO_SNAPSHOT_JSON
                            : row.shape == "pickle" ? VELO_SNAPSHOT_PICKLE
                                                    : VELO_SNAPSHOT_TIMELINE);
    return true;
  }
  if (row.name == "relay" && threads == 1) return false;
  if (row.name == "step" && threads > 1) return false;
  if (row.name == "mix" && row.bytes != 0 && threads > 1) return false;
  if (row.residency == "touched" && row.bytes > 1 << 26 && threads > 1) return false;  // a minute
  velo_pool pool = nullptr;
  require(velo_pool_create(nullptr, &pool));
  {
    const measured_calls calls = row.name == "pair"   ? pairs_of(row, threads, pool)
                                 : row.name == "mix"  ? mixes_of(row, threads, pool)
                                 : row.name == "step" ? steps_of(row, pool)
                                                      : relays_of(row, pool);
    measuring how;
    how.budget = options_.budget;
    how.threads = threads;
    const outcome measured = measure(calls.all, how);
    result& into = result_of(row, threads);
    into.p25s.push_back(measured.timings[0].p25 / calls.count);
    into.mins.push_back(measured.timings[0].min / calls.count);
    into.rates.push_back(1 / into.p25s.back());
    into.calls += measured.timings[0].calls, into.disturbed += measured.timings[0].disturbed;
    for (std::size_t c = 1; c < calls.all.size(); ++c)
      into.add_peer(calls.all[c].name, calls.count / measured.timings[c].p25,
                    speed_ratio(measured, 0, c));
  }
  velo_pool_destroy(pool);
  return true;
}

void bench::print(const result& r) const {
  const double nanoseconds = 1e9 * median(r.p25s);
  std::fprintf(out_, "%-6s %-15s %-10s %d %10.1f", r.name.c_str(), r.shape.c_str(),
               r.residency.c_str(), r.threads, nanoseconds);
  for (const peer_result& p : r.peers)
    std::fprintf(out_, "  %s %.1f", p.name.c_str(), 1e9 / median(p.rates));
  std::fprintf(out_, "%s\n", r.disturbed * 2 > r.calls ? "  disturbed" : "");
  if (!options_.json) return;
  const peer_result* best = r.best_peer();
  json_t* line = json_pack("{s:s, s:s, s:s, s:i, s:s, s:f}", "name", r.name.c_str(), "shape",
                           r.shape.c_str(), "residency", r.residency.c_str(), "threads", r.threads,
                           "unit", r.unit.c_str(), "velo", nanoseconds);
  json_object_set_new(line, "peer", best ? json_real(1e9 / median(best->rates)) : json_null());
  json_object_set_new(line, "peer_name", best ? json_string(best->name.c_str()) : json_null());
  json_object_set_new(line, "ratio", best ? json_real(median(best->ratios)) : json_null());
  json_t* peers = json_object();
  for (const peer_result& p : r.peers)
    json_object_set_new(peers, p.name.c_str(), json_real(1e9 / median(p.rates)));
  json_object_set_new(line, "peers", peers);
  json_object_set_new(line, "p25", json_real(median(r.p25s)));
  json_object_set_new(line, "min", json_real(*std::min_element(r.mins.begin(), r.mins.end())));
  json_object_set_new(line, "load", json_real(load_average()));
  char* text = json_dumps(line, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
  std::printf("%s\n", text);
  std::free(text);
  json_decref(line);
}

int bench::run() {
  std::vector<memory_row> rows;
  const std::regex wanted(options_.filter);
  for (const memory_row& r : all_rows(steps_))
    if (std::regex_search(r.name + " " + r.shape + " " + r.residency, wanted)) rows.push_back(r);
  if (options_.list) {
    for (const memory_row& r : rows)
      std::printf("%s %s %s\n", r.name.c_str(), r.shape.c_str(), r.residency.c_str());
    return 0;
  }
  pin_thread(machine_.cpus[0]);
  if (machine_.cpus.size() > 1) partner_ = std::make_unique<partner>(machine_.cpus[1]);
  std::fprintf(out_, "%s, load %.1f: nanoseconds for an allocation and its free, p25\n",
               machine_.kind.c_str(), load_average());
  std::fprintf(out_, "%-6s %-15s %-10s T %10s\n", "row", "size", "memory", "velo");
  for (int pass = 0; pass < options_.passes; ++pass)
    for (const int threads : options_.threads)
      for (const memory_row& r : rows) {
        if (threads > 1 && partner_ == nullptr) continue;
        if (measure_row(r, threads) && pass + 1 == options_.passes) print(result_of(r, threads));
      }
  partner_.reset();
  const judgement j = judge(options_.folder + "/goals.json", "memory", machine_.kind, results_);
  print_judgement(out_, j);
  return 0;
}

}  // namespace
}  // namespace velo::bench

int main(int count, char** arguments) {
  using namespace velo::bench;
  options o = parse_options(count, arguments, help_text);
  reserve_static_tls(arguments);
  return bench(std::move(o), load_peers()).run();
}
