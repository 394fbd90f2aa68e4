// Sizes batches and blocks from a first estimate, then times. Not hot itself: one call costs two
// clock reads (25 ns each) and two getrusage (0.3 us) outside the timed span.
#include "bench/harness/protocol.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench/limits/machine.hpp"

namespace velo::bench {
namespace {

constexpr double shortest_sample = 20e-6;  // 800 times the clock's own cost
constexpr double long_call = 1e-3;
constexpr double block_share = 400e-6;  // what one candidate's calls in a block should last
constexpr auto settle = std::chrono::milliseconds(2);

struct sample {
  double seconds;
  bool disturbed;
};

struct plan {
  std::vector<int> batches;  // calls in one sample, by candidate
  int samples_per_block;
  int blocks;
  bool long_calls;
};

double seconds_of_one(const candidate& who, int set) {
  stopwatch watch(true);
  who.call(set);
  watch.stop();
  return watch.seconds();
}

double estimate(const candidate& who, int sets) {
  who.call(0);  // allocates, packs, makes kernels
  double best = seconds_of_one(who, 1 % sets);
  for (int i = 2; i < 5 && best < long_call; ++i)
    best = std::min(best, seconds_of_one(who, i % sets));
  return best;
}

plan make_plan(const std::vector<candidate>& candidates, const measuring& how) {
  plan p{{}, 1, how.blocks, false};
  double total = 0, shortest = 1e9;
  for (const candidate& who : candidates) {
    const double t = std::max(estimate(who, how.sets), 1e-9);
    p.batches.push_back(std::max(1, static_cast<int>(std::ceil(shortest_sample / t))));
    const double sample_time = t * p.batches.back();
    const double pause = how.threads > 1 ? std::chrono::duration<double>(settle).count() : 0;
    total += pause + (how.threads > 1 || how.warm ? 2 : 1) * sample_time;
    shortest = std::min(shortest, sample_time);
    p.long_calls = p.long_calls || t >= long_call;
  }
  if (!p.long_calls)
    p.samples_per_block = std::clamp(static_cast<int>(block_share / shortest), 4, 16);
  if (total * p.samples_per_block * p.blocks > how.budget && !p.long_calls)
    p.samples_per_block = std::max(4, static_cast<int>(how.budget / (total * p.blocks)));
  const double affordable = how.budget / (total * p.samples_per_block);
  p.blocks = std::clamp(static_cast<int>(affordable), std::min(7, how.blocks), how.blocks);
  return p;
}

sample take(const candidate& who, int set, int batch, const measuring& how) {
  if (how.threads > 1) std::this_thread::sleep_for(settle);
  if (how.threads > 1 || how.warm) who.call(set);
  stopwatch watch(how.threads == 1);
  for (int i = 0; i < batch; ++i) who.call(set);
  watch.stop();
  return {watch.seconds() / batch, watch.disturbed()};
}

timing summarize(const std::vector<sample>& samples) {
  std::vector<double> clean, all;
  for (const sample& s : samples) {
    all.push_back(s.seconds);
    if (!s.disturbed) clean.push_back(s.seconds);
  }
  timing t;
  t.calls = static_cast<int>(all.size());
  t.disturbed = static_cast<int>(all.size() - clean.size());
  const std::vector<double>& counted = clean.size() * 2 >= all.size() ? clean : all;
  t.min = quantile(counted, 0);
  t.p25 = quantile(counted, 0.25);
  t.p50 = quantile(counted, 0.5);
  t.p95 = quantile(counted, 0.95);
  return t;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

outcome measure(const std::vector<candidate>& candidates, const measuring& how) {
  const plan p = make_plan(candidates, how);
  const std::size_t n = candidates.size();
  std::vector<std::vector<sample>> samples(n);
  outcome result;
  result.long_calls = p.long_calls;
  result.block_p25s.resize(n);
  int turn = 0;
  for (int block = 0; block < p.blocks; ++block) {
    for (int i = 0; i < p.samples_per_block; ++i)
      for (std::size_t c = 0; c < n; ++c, ++turn) {
        const std::size_t who = (c + static_cast<std::size_t>(block)) % n;  // each begins in turn
        samples[who].push_back(take(candidates[who], turn % how.sets, p.batches[who], how));
      }
    for (std::size_t c = 0; c < n; ++c)
      result.block_p25s[c].push_back(
          summarize({samples[c].end() - p.samples_per_block, samples[c].end()}).p25);
  }
  for (const auto& own : samples) result.timings.push_back(summarize(own));
  return result;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double speed_ratio(const outcome& result, std::size_t ours, std::size_t theirs) {
  if (result.long_calls) return result.timings[theirs].p25 / result.timings[ours].p25;
  std::vector<double> ratios;
  for (std::size_t block = 0; block < result.block_p25s[ours].size(); ++block)
    ratios.push_back(result.block_p25s[theirs][block] / result.block_p25s[ours][block]);
  return quantile(ratios, 0.5);
}

}  // namespace velo::bench
