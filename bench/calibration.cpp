// Sizes the loops, runs them pinned, takes the quicker quartile. A pattern's arrays are shared out
// to the threads in equal contiguous parts, as operators share their rows.
#include "bench/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/calibration_loops.hpp"

namespace velo::bench {
namespace {

constexpr std::size_t limits = static_cast<std::size_t>(limit::count);

double quartile_rate(std::vector<double>& seconds, double work) {
  std::sort(seconds.begin(), seconds.end());
  return work / seconds[seconds.size() / 4] * 1e-9;
}

double compute_rate(const machine& m, const compute_loop& loop, int threads, bool quick) {
  const double assumed_rate = 1e11;  // a first guess, corrected by the first run
  auto rounds = static_cast<std::int64_t>(0.002 * assumed_rate / loop.flop_per_round);
  const double first = run_pinned(m.cpus, 1, [&](int) { loop.run(rounds); });
  rounds = static_cast<std::int64_t>(static_cast<double>(rounds) * 0.004 / first);
  rounds = std::max<std::int64_t>(rounds, 1);
  std::vector<double> seconds;
  for (int repeat = 0; repeat < (quick ? 9 : 31); ++repeat)
    seconds.push_back(run_pinned(m.cpus, threads, [&](int) { loop.run(rounds); }));
  return quartile_rate(seconds, static_cast<double>(rounds) * loop.flop_per_round * threads);
}

struct arena {
  std::vector<buffer> arrays;
  std::int64_t count;  // floats an array
};

double pattern_rate(const machine& m, pattern walk, const arena& memory, int streams, int threads,
                    int passes) {
  const std::int64_t part = memory.count / threads / 64 * 64;
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 7; ++repeat)
    seconds.push_back(run_pinned(m.cpus, threads, [&](int thread) {
      float* own[4];
      for (std::size_t i = 0; i < 4; ++i) own[i] = memory.arrays[i].as<float>() + part * thread;
      for (int pass = 0; pass < passes; ++pass) walk(own, part);
    }));
  return quartile_rate(seconds, 4.0 * streams * static_cast<double>(part) * threads * passes);
}

arena make_arena(std::int64_t count) {
  arena memory{{}, count};
  for (int i = 0; i < 4; ++i) {
    memory.arrays.emplace_back(static_cast<std::size_t>(count) * sizeof(float));
    std::fill_n(memory.arrays.back().as<float>(), count, 1.0f);
  }
  return memory;
}

void calibrate_compute(const machine& m, int threads, bool quick, calibration& result) {
  if (!m.avx2) return;
  const compute_loop& fma = m.avx512 ? fma_avx512_loop : fma_avx2_loop;
  result.at(limit::fma_f32, threads) = compute_rate(m, fma, threads, quick);
  if (m.avx512_bf16)
    result.at(limit::dot_bf16, threads) = compute_rate(m, dot_bf16_loop, threads, quick);
  if (m.amx) result.at(limit::amx_bf16, threads) = compute_rate(m, amx_bf16_loop, threads, quick);
}

void calibrate_memory(const machine& m, int threads, const arena& dram, const arena& cache,
                      calibration& result) {
  if (!m.avx2) return;
  const pattern_table& walks = m.avx512 ? patterns_avx512 : patterns_avx2;
  const auto measure = [&](limit which, pattern walk, const arena& memory, int streams,
                           int passes) {
    result.at(which, threads) = pattern_rate(m, walk, memory, streams, threads, passes);
  };
  measure(limit::read, walks.read, dram, 1, 1);
  measure(limit::copy, walks.copy, dram, 2, 1);
  measure(limit::copy_nt, walks.copy_nt, dram, 2, 1);
  measure(limit::triad_nt, walks.triad_nt, dram, 3, 1);
  measure(limit::scale, walks.scale, dram, 2, 1);
  measure(limit::adam, walks.adam, dram, 7, 1);
  measure(limit::cache_copy, walks.copy, cache, 2, 16);
  measure(limit::cache_triad, walks.triad, cache, 3, 16);
}

}  // namespace

const char* limit_name(limit which) {
  static constexpr const char* names[limits] = {"fma f32", "dot bf16",   "amx bf16",   "read",
                                                "copy",    "copy nt",    "triad nt",   "scale",
                                                "adam",    "cache copy", "cache triad"};
  return names[static_cast<std::size_t>(which)];
}

const char* limit_unit(limit which) {
  return which <= limit::amx_bf16 ? "GF/s" : "GB/s";
}

double calibration::at(limit which, int threads) const {
  return const_cast<calibration*>(this)->at(which, threads);
}

double& calibration::at(limit which, int threads) {
  return rates[static_cast<std::size_t>(which)][static_cast<std::size_t>(threads - 1)];
}

calibration calibrate(const machine& m, int max_threads, bool quick) {
  const arena dram = make_arena(std::int64_t{quick ? 32 : 64} << 20);
  const arena cache = make_arena(std::int64_t{1} << 20);
  calibration result;
  for (int threads = 1; threads <= std::min(max_threads, calibration::max_threads); ++threads) {
    calibrate_compute(m, threads, quick, result);
    calibrate_memory(m, threads, dram, cache, result);
  }
  return result;
}

double drift(const calibration& before, const calibration& after, std::string& worst) {
  double largest = 0;
  for (std::size_t i = 0; i < limits; ++i)
    for (int threads = 1; threads <= calibration::max_threads; ++threads) {
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
  for (std::size_t i = 0; i < limits; ++i)
    for (std::size_t t = 0; t < calibration::max_threads; ++t)
      result.rates[i][t] = (before.rates[i][t] + after.rates[i][t]) / 2;
  return result;
}

}  // namespace velo::bench
