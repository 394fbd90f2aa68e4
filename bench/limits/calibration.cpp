// Sizes the loops, runs them pinned, takes the quicker quartile. A pattern's arrays are shared out
// to the threads in equal contiguous parts, as operators share their rows.
#include "bench/limits/calibration.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/limits/calibration_loops.hpp"

namespace velo::bench {
namespace {

constexpr std::size_t limits = static_cast<std::size_t>(limit::count);

// Rate of `work` by the quicker quartile of what `once` returns, in seconds.
template <class Once>
double quartile_rate(const effort& how, double work, Once&& once) {
  using clock = std::chrono::steady_clock;
  const auto end = clock::now() + std::chrono::duration<double>(how.seconds);
  std::vector<double> seconds;
  for (int repeat = 0; repeat < how.repeats && (repeat < 3 || clock::now() < end); ++repeat)
    seconds.push_back(once());
  std::sort(seconds.begin(), seconds.end());
  return work / seconds[seconds.size() / 4] * 1e-9;
}

// Rounds that take about 4 ms, found from few: the loops of a slow machine, or of one that is
// emulated, must not take minutes.
std::int64_t rounds_of(const machine& m, const compute_loop& loop) {
  std::int64_t rounds = 64;
  for (;;) {
    const double seconds = run_pinned(m.cpus, 1, [&](int) { loop.run(rounds); });
    if (seconds >= 0.0005)
      return std::max<std::int64_t>(
          static_cast<std::int64_t>(static_cast<double>(rounds) * 0.004 / seconds), 1);
    rounds *= 8;
  }
}

double compute_rate(const machine& m, const compute_loop& loop, int threads, const effort& how) {
  const std::int64_t rounds = rounds_of(m, loop);
  return quartile_rate(how, static_cast<double>(rounds) * loop.flop_per_round * threads,
                       [&] { return run_pinned(m.cpus, threads, [&](int) { loop.run(rounds); }); });
}

struct arena {
  std::vector<buffer> arrays;
  std::int64_t count;  // floats an array
};

arena make_arena(std::size_t bytes) {
  arena memory{{}, static_cast<std::int64_t>(bytes / sizeof(float))};
  for (int i = 0; i < 4; ++i) {
    memory.arrays.emplace_back(bytes);
    std::fill_n(memory.arrays.back().as<float>(), memory.count, 1.0f);
  }
  return memory;
}

// A pattern as a limit: over which arrays, and how many streams of them a walk counts.
struct memory_limit {
  limit which;
  pattern pattern_table::*walk;
  int streams;
  bool cached;
};

constexpr memory_limit memory_limits[] = {
    {limit::read, &pattern_table::read, 1, false},
    {limit::copy, &pattern_table::copy, 2, false},
    {limit::copy_nt, &pattern_table::copy_nt, 2, false},
    {limit::triad_nt, &pattern_table::triad_nt, 3, false},
    {limit::scale, &pattern_table::scale, 2, false},
    {limit::adam, &pattern_table::adam, 7, false},
    {limit::cache_read, &pattern_table::read, 1, true},
    {limit::cache_copy, &pattern_table::copy, 2, true},
    {limit::cache_triad, &pattern_table::triad, 3, true},
    {limit::cache_adam, &pattern_table::adam, 7, true},
};

double pattern_rate(const machine& m, const memory_limit& l, const arena& memory, int threads,
                    const effort& how) {
  const pattern_table& table = m.avx512 ? patterns_avx512 : m.avx2 ? patterns_avx2 : patterns_sse2;
  const pattern walk = table.*l.walk;
  const int passes = l.cached ? 16 : 1;
  const std::int64_t part = memory.count / threads / 64 * 64;
  const double bytes = 4.0 * l.streams * static_cast<double>(part) * threads * passes;
  return quartile_rate(how, bytes, [&] {
    return run_pinned(m.cpus, threads, [&](int thread) {
      float* own[4];
      for (std::size_t i = 0; i < 4; ++i) own[i] = memory.arrays[i].as<float>() + part * thread;
      for (int pass = 0; pass < passes; ++pass) walk(own, part);
    });
  });
}

void calibrate_compute(const machine& m, int threads, const effort& how, calibration& result) {
  const compute_loop& f32 = m.avx512 ? fma_avx512_loop : m.avx2 ? fma_avx2_loop : sse2_loop;
  result.at(limit::fma_f32, threads) = compute_rate(m, f32, threads, how);
  if (m.avx512_bf16)
    result.at(limit::dot_bf16, threads) = compute_rate(m, dot_bf16_loop, threads, how);
  if (m.amx) result.at(limit::amx_bf16, threads) = compute_rate(m, amx_bf16_loop, threads, how);
}

}  // namespace

const char* limit_name(limit which) {
  static constexpr const char* names[limits] = {
      "fma f32", "dot bf16", "amx bf16",   "read",       "copy",        "copy nt",   "triad nt",
      "scale",   "adam",     "cache read", "cache copy", "cache triad", "cache adam"};
  return names[static_cast<std::size_t>(which)];
}

const char* limit_unit(limit which) {
  return which <= limit::amx_bf16 ? "GF/s" : "GB/s";
}

double calibration::at(limit which, int threads) const {
  const auto found = rates_.find(threads);
  return found == rates_.end() ? 0 : found->second[static_cast<std::size_t>(which)];
}

double& calibration::at(limit which, int threads) {
  return rates_[threads][static_cast<std::size_t>(which)];
}

std::vector<int> calibration::thread_counts() const {
  std::vector<int> counts;
  for (const auto& [threads, rates] : rates_) counts.push_back(threads);
  return counts;
}

calibration calibrate(const machine& m, const std::vector<int>& threads, const effort& how) {
  const arena dram = make_arena(
      std::clamp(static_cast<std::size_t>(m.cache_bytes), how.least_array, how.largest_array));
  const arena cache = make_arena(std::size_t{4} << 20);
  calibration result;
  for (const int count : threads) {
    calibrate_compute(m, count, how, result);
    for (const memory_limit& l : memory_limits)
      result.at(l.which, count) = pattern_rate(m, l, l.cached ? cache : dram, count, how);
  }
  return result;
}

double product_peak(const calibration& c, bool bf16, int threads) {
  const double f32 = c.at(limit::fma_f32, threads);
  if (!bf16) return f32;
  return std::max({f32, c.at(limit::dot_bf16, threads), c.at(limit::amx_bf16, threads)});
}

double drift(const calibration& before, const calibration& after, std::string& worst) {
  double largest = 0;
  for (const int threads : before.thread_counts())
    for (std::size_t i = 0; i < limits; ++i) {
      const double a = before.at(static_cast<limit>(i), threads);
      const double b = after.at(static_cast<limit>(i), threads);
      if (a <= 0 || b <= 0 || std::abs(b / a - 1) <= largest) continue;
      largest = std::abs(b / a - 1);
      worst = std::string(limit_name(static_cast<limit>(i))) + " " + std::to_string(threads) + "T";
    }
  return largest;
}

calibration mean(const calibration& before, const calibration& after) {
  calibration result;
  for (const int threads : before.thread_counts())
    for (std::size_t i = 0; i < limits; ++i) {
      const auto which = static_cast<limit>(i);
      result.at(which, threads) = (before.at(which, threads) + after.at(which, threads)) / 2;
    }
  return result;
}

}  // namespace velo::bench
