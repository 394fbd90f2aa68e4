// bench_ops: measures every row of velo's operators beside its peers and says which
// goals are reached.
//
// Order of a run: calibrate; compare the bench with itself (A/A); then, a pass at a time, for one
// and for two threads, each row: ask torch for its figure, measure velo and the in-process peers
// interleaved, check velo's result; calibrate again after each pass. Cost: --quick about two
// minutes, a full run of three passes about half an hour.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <regex>

#include "bench/harness/experiment.hpp"
#include "bench/harness/goals.hpp"
#include "bench/harness/options.hpp"
#include "bench/harness/result.hpp"
#include "bench/limits/calibration_loops.hpp"
#include "bench/peers/torch_peer.hpp"
#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

// Sets the environment that the peers must find when they are loaded. OpenBLAS knows few processors
// by name and falls back to AVX2; both OpenMP's and its workers would spin far into the next
// candidate's turn.
void prepare_environment(char** arguments) {
  if (std::getenv("VELO_BENCH_PREPARED")) return;
  setenv("VELO_BENCH_PREPARED", "1", 1);
  if (__builtin_cpu_supports("avx512f")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
  setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
  setenv("GOMP_SPINCOUNT", "10000", 0);
  execv("/proc/self/exe", arguments);
}

class bench {
 public:
  explicit bench(options o)
      : options_(std::move(o)),
        out_(options_.json ? stderr : stdout),
        machine_(identify_machine()),
        torch_(
            options_.torch && !options_.list && !options_.limits ? options_.python : "/nonexistent",
            options_.folder + "/bench_torch.py") {}

  int run();

 private:
  void select_rows();
  std::vector<int> up_to(int threads) const;  // the counts from 1 that the machine has
  void announce() const;
  bool compare_with_itself();
  void measure_pass(int pass, int threads);
  result& result_of(const row& what, int threads);  // made on first use
  void measure_row(const row& what, host& velo, result& into);
  std::vector<torch_timing> ask_torch(const row& what, int threads, int sets);
  void print_limits(const calibration& c) const;
  void print_limits_json() const;
  void report() const;

  options options_;
  FILE* out_;
  machine machine_;
  torch_peer torch_;
  std::vector<row> rows_;
  std::vector<result> results_;  // by row, then by thread count
  calibration limits_;           // the latest
  int failures_ = 0;
};

void bench::select_rows() {
  const std::regex wanted(options_.filter);
  for (row& each : list_rows(machine_)) {
    const std::string text =
        each.name + " " + name_of(each.type) + " " + each.shape + " " + each.residency;
    const bool heavy = options_.quick && each.unit == "GF/s" && each.work > 2e10;
    if (heavy || !std::regex_search(text, wanted)) continue;
    if (options_.list) std::printf("%s\n", text.c_str());
    if (!has_operator(each.op)) {
      std::fprintf(stderr, "bench_ops: %s left out: this libvelo has no operator %s\n",
                   text.c_str(), each.op.c_str());
      continue;
    }
    rows_.push_back(std::move(each));
  }
}

std::vector<int> bench::up_to(int threads) const {
  std::vector<int> counts;
  for (int count = 1; count <= threads && count <= static_cast<int>(machine_.cpus.size()); ++count)
    counts.push_back(count);
  return counts;
}

void bench::announce() const {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  std::fprintf(out_, "%s  %s (%s), %zu processors, load %.2f\n", date, machine_.kind.c_str(),
               machine_.brand.c_str(), machine_.cpus.size(), load_average());
  const std::string peers[] = {onednn::version(), openblas::version(),
                               torch_.available() ? "torch " + torch_.version() : std::string()};
  for (const std::string& peer : peers)
    std::fprintf(out_, "%s%s", peer.c_str(), peer.empty() ? "" : "; ");
  std::fprintf(out_, "%s\n",
               torch_.available() ? "peers pinned as velo is"
                                  : "torch is absent: its rows have no such peer (--torch PYTHON)");
}

void bench::print_limits(const calibration& c) const {
  for (int i = 0; i < static_cast<int>(limit::count); ++i)
    std::fprintf(out_, "%s%-11s %8.1f %8.1f %s", i % 3 ? "    " : (i ? "\n" : ""),
                 limit_name(static_cast<limit>(i)), c.at(static_cast<limit>(i), 1),
                 c.at(static_cast<limit>(i), 2), limit_unit(static_cast<limit>(i)));
  std::fprintf(out_, "\n");
}

// The same code twice must compare as equal, or no ratio of this run means anything.
bool bench::compare_with_itself() {
  if (!machine_.avx2) return true;
  const pattern copy = machine_.avx512 ? patterns_avx512.copy : patterns_avx2.copy;
  const buffer from(std::size_t{2} << 20), to(std::size_t{2} << 20);
  float* arrays[2] = {from.as<float>(), to.as<float>()};
  const auto call = [&](int) { copy(arrays, std::int64_t{1} << 19); };
  measuring how;
  how.budget = options_.quick ? 0.2 : 1.0;
  const double ratio = speed_ratio(measure({{"A", call}, {"A", call}}, how), 0, 1);
  const bool equal = ratio >= 0.97 && ratio <= 1.03;
  std::fprintf(out_, "A/A: %.3f%s\n", ratio, equal ? "" : "  outside 0.97-1.03: THIS RUN IS VOID");
  return equal;
}

std::vector<torch_timing> bench::ask_torch(const row& what, int threads, int sets) {
  if (what.torch.empty()) return {};
  return torch_.measure(what.torch, what.type, what.shape, threads, sets, options_.budget / 4);
}

void bench::measure_row(const row& what, host& velo, result& into) {
  // Well above what a virtual machine has of any L3.
  constexpr std::int64_t rotated = std::int64_t{512} << 20;
  const int sets = what.footprint
                       ? static_cast<int>(std::clamp<std::int64_t>(rotated / what.footprint, 1, 4))
                       : 1;
  ask_torch(what, velo.threads, sets);
  experiment e(velo);
  for (int set = 0; set < sets; ++set) {
    e.begin_set();
    what.fill(e);
  }
  const std::vector<candidate> candidates = e.candidates();
  for (const candidate& who : candidates) who.call(0);
  pin_workers(machine_.cpus, velo.threads);
  measuring how;
  how.threads = velo.threads;
  how.sets = sets;
  how.blocks = options_.quick ? 7 : 31;
  how.budget = options_.budget;
  how.warm = what.residency == "cache";
  const outcome measured = measure(candidates, how);
  const std::vector<torch_timing> torch =
      ask_torch(what, velo.threads, sets);  // before and after, answered together

  const timing& own = measured.timings[0];
  into.rates.push_back(what.work / own.p25 * 1e-9);
  into.p25s.push_back(own.p25);
  into.mins.push_back(into.mins.empty() ? own.min : std::min(own.min, into.mins.back()));
  into.calls += own.calls;
  into.disturbed += own.disturbed;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    into.add_peer(candidates[i].name, what.work / measured.timings[i].p25 * 1e-9,
                  speed_ratio(measured, 0, i));
  for (const torch_timing& t : torch)
    into.add_peer(t.peer, what.work / t.p25 * 1e-9, t.p25 / own.p25);

  const double tolerance = e.tolerance() > 0 ? e.tolerance() : default_tolerance(what.type);
  const double error = e.error();
  if (!(error <= tolerance)) {
    ++failures_;
    std::fprintf(stderr, "bench_ops: WRONG RESULT %s %s %s: relative error %.2g above %.2g\n",
                 what.name.c_str(), name_of(what.type), what.shape.c_str(), error, tolerance);
  }
}

result& bench::result_of(const row& what, int threads) {
  for (result& r : results_)
    if (r.name == what.name && r.type == what.type && r.shape == what.shape && r.threads == threads)
      return r;
  results_.emplace_back();
  result& fresh = results_.back();
  fresh.name = what.name;
  fresh.type = what.type;
  fresh.shape = what.shape;
  fresh.residency = what.residency;
  fresh.unit = what.unit;
  fresh.bound = what.bound;
  fresh.threads = threads;
  return fresh;
}

void bench::measure_pass(int pass, int threads) {
  onednn::set_threads(threads);
  openblas::set_threads(threads);
  host velo(threads);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const row& what = rows_[i];
    result& into = result_of(what, threads);
    if (isatty(2) && options_.passes > 1)
      std::fprintf(stderr, "\rpass %d, %d threads, row %zu of %zu: %-60s", pass + 1, threads, i + 1,
                   rows_.size(), (what.name + " " + what.shape).c_str());
    try {
      measure_row(what, velo, into);
      into.limits.push_back(limits_.at(what.bound, threads));  // made exact after the pass
      into.last_pass = pass;
      if (options_.passes == 1) print_line(out_, into);
    } catch (const std::exception& problem) {
      ++failures_;
      std::fprintf(stderr, "bench_ops: %s %s %s failed: %s\n", what.name.c_str(),
                   name_of(what.type), what.shape.c_str(), problem.what());
    }
  }
  if (isatty(2) && options_.passes > 1) std::fprintf(stderr, "\r%120s\r", "");
}

void bench::report() const {
  if (options_.passes > 1) print_header(out_);
  for (const result& r : results_) {
    if (r.rates.empty()) continue;
    if (options_.passes > 1) print_line(out_, r);
    if (options_.json) print_json(stdout, r);
  }
  std::fprintf(out_, "\n");
  print_judgement(out_, judge(options_.folder + "/goals.json", "goals", machine_.kind, results_));
}

void bench::print_limits_json() const {
  const calibration c = calibrate(machine_, up_to(2), options_.quick ? quick : thorough);
  std::printf("{\"cpu\": \"%s\"", machine_.kind.c_str());
  for (int i = 0; i < static_cast<int>(limit::count); ++i)
    std::printf(", \"%s\": [%.1f, %.1f]", limit_name(static_cast<limit>(i)),
                c.at(static_cast<limit>(i), 1), c.at(static_cast<limit>(i), 2));
  std::printf("}\n");
}

int bench::run() {
  if (options_.limits) {
    print_limits_json();
    return 0;
  }
  select_rows();
  if (options_.list) return 0;
  announce();
  pin_thread(machine_.cpus[0]);
  const int most = *std::max_element(options_.threads.begin(), options_.threads.end());
  const effort how = options_.quick ? quick : thorough;
  limits_ = calibrate(machine_, up_to(most), how);
  print_limits(limits_);
  const bool equal = compare_with_itself();
  if (options_.passes == 1) print_header(out_);  // and each row as it is measured
  for (int pass = 0; pass < options_.passes; ++pass) {
    for (int threads : options_.threads)
      if (threads <= static_cast<int>(machine_.cpus.size())) measure_pass(pass, threads);
    const calibration after = calibrate(machine_, up_to(most), how);
    std::string worst;
    const double change = drift(limits_, after, worst);
    std::fprintf(out_, "pass %d: limits moved by at most %.0f %% (%s), load %.2f%s\n", pass + 1,
                 100 * change, worst.c_str(), load_average(),
                 change > 0.15 ? "; shares of this pass are doubtful" : "");
    const calibration during = mean(limits_, after);
    for (result& r : results_)
      if (r.last_pass == pass) r.limits.back() = during.at(r.bound, r.threads);
    limits_ = after;
  }
  report();
  return failures_ || !equal ? 1 : 0;
}

}  // namespace
}  // namespace velo::bench

int main(int count, char** arguments) {
  velo::bench::prepare_environment(arguments);
  try {
    return velo::bench::bench(
               velo::bench::parse_options(count, arguments, velo::bench::help_of_bench_ops))
        .run();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_ops: %s\n", problem.what());
    return 1;
  }
}
