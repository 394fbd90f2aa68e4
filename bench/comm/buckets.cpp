// The order in which gradient buckets are sent off, learned from one step, beside the best there
// is.
//
// Two ranks, each a thread; eight buckets of different sizes become ready one after the other, a
// millisecond apart, in an order that is not theirs; the backward pass is a sleep, as if another
// device computed it. Exposed is the time from the last bucket's readiness to the end of all
// collectives. The best order is the one of all 40,320 with the least exposed time by the readiness
// and the durations of collectives alone; it is then called by hand, step for step in turn with
// velo_buckets.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <thread>

#include "bench/comm/scenes.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "velo/velo.h"

namespace velo::bench {
namespace {

constexpr int ranks = 2, count = 8, steps = 40;
constexpr std::int64_t elements[count] = {400000, 90000,  700000, 250000,
                                          60000,  500000, 300000, 150000};
constexpr int readiness[count] = {5, 2, 7, 0,
                                  3, 6, 1, 4};  // which bucket is ready first, second ..
constexpr double apart = 1e-3;

class side {
 public:
  side() {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.threads = 1;
    require(velo_context_create(&desc, &context));
    require(velo_context_stream(context, &inline_stream));
    require(velo_stream_create(context, &queue));
  }
  ~side() { velo_context_destroy(context); }
  side(const side&) = delete;

  void make_buckets() {
    const velo_tensor all = view(0, count);
    velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
    desc.bytes = 1;  // a slice is a bucket
    require(velo_buckets_create(queue, group, &all, elements, count, &desc, &buckets));
  }
  // Tensors keep their sizes here.
  velo_tensor view(int first, int many) {
    std::int64_t& size = sizes_[many == count ? count : first];
    size = std::accumulate(elements + first, elements + first + many, std::int64_t{0});
    const std::int64_t begin = std::accumulate(elements, elements + first, std::int64_t{0});
    return {memory_.data() + begin,
            {VELO_DEVICE_CPU, 0},
            1,
            {VELO_DTYPE_FLOAT, 32, 1},
            &size,
            nullptr,
            0};
  }
  void reduce(int bucket) {
    const velo_tensor x = view(bucket, 1);
    require(velo_group_all_reduce(queue, group, nullptr, &x, &x));
  }
  void line_up() const { require(velo_group_barrier(inline_stream, group)); }

  velo_context context = nullptr;
  velo_stream inline_stream = nullptr, queue = nullptr;
  velo_group group = nullptr;
  velo_buckets buckets = nullptr;

 private:
  std::vector<float> memory_ = std::vector<float>(
      static_cast<std::size_t>(std::accumulate(elements, elements + count, std::int64_t{0})));
  std::int64_t sizes_[count + 1] = {};
};

// Seconds from the last readiness to the end.
double step(const std::function<void(int)>& ready, const std::function<void()>& finish) {
  const double begin = now();
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(begin + (i + 1) * apart - now()));
    ready(readiness[i]);
  }
  const double last = now();
  finish();
  return now() - last;
}

using order = std::vector<int>;

order best_order(const std::vector<double>& durations) {
  double ready_at[count];
  for (int i = 0; i < count; ++i) ready_at[readiness[i]] = (i + 1) * apart;
  order all(count), best;
  std::iota(all.begin(), all.end(), 0);
  double least = 1e9;
  do {
    double end = 0;
    for (const int bucket : all)
      end = std::max(end, ready_at[bucket]) + durations[static_cast<std::size_t>(bucket)];
    if (end < least) least = end, best = all;
  } while (std::next_permutation(all.begin(), all.end()));
  return best;
}

// Each bucket's duration alone, the least of several runs.
std::vector<double> durations_of(side& me) {
  std::vector<double> all(count, 1e9);
  for (int round = 0; round < 10; ++round)
    for (int bucket = 0; bucket < count; ++bucket) {
      me.line_up();
      const double begin = now();
      me.reduce(bucket);
      require(velo_stream_synchronize(me.queue));
      all[static_cast<std::size_t>(bucket)] =
          std::min(all[static_cast<std::size_t>(bucket)], now() - begin);
    }
  return all;
}

double learned_step(side& me) {
  return step(
      [&](int bucket) { require(velo_buckets_ready(me.buckets, me.inline_stream, bucket)); },
      [&] { require(velo_buckets_finish(me.buckets, me.inline_stream)); });
}

double step_by_hand(side& me, const order& best) {
  std::vector<bool> is_ready(count, false);
  std::size_t next = 0;
  return step(
      [&](int bucket) {
        is_ready[static_cast<std::size_t>(bucket)] = true;
        for (; next < count && is_ready[static_cast<std::size_t>(best[next])]; ++next)
          me.reduce(best[next]);
      },
      [&] { require(velo_stream_synchronize(me.queue)); });
}

}  // namespace

std::vector<result> bucket_rows() {
  side sides[ranks];
  velo_context contexts[ranks] = {sides[0].context, sides[1].context};
  velo_group groups[ranks];
  require(velo_group_create_local(contexts, ranks, nullptr, groups));
  for (int r = 0; r < ranks; ++r) sides[r].group = groups[r];
  std::vector<double> learned[ranks], by_hand[ranks];
  order best;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      side& me = sides[r];
      me.make_buckets();
      const std::vector<double> durations = durations_of(me);
      if (r == 0) best = best_order(durations);
      me.line_up();
      learned_step(me);  // the recorded one
      for (int i = 0; i < steps; ++i) {
        me.line_up();
        learned[r].push_back(learned_step(me));
        me.line_up();
        by_hand[r].push_back(step_by_hand(me, best));
      }
      velo_buckets_destroy(me.buckets);
    });
  for (std::thread& one : threads) one.join();
  for (std::size_t i = 0; i < steps; ++i) {
    learned[0][i] = std::max(learned[0][i], learned[1][i]);
    by_hand[0][i] = std::max(by_hand[0][i], by_hand[1][i]);
  }
  result row;
  row.name = "bucket order";
  row.shape = "8 buckets, 2.3 MiB each";
  row.residency = "local";
  row.unit = "1/s";
  row.threads = ranks;
  const double mine = median(learned[0]), theirs = median(by_hand[0]);
  row.rates = {1 / mine};
  row.limits = {0};
  row.p25s = {mine};
  row.mins = {*std::min_element(learned[0].begin(), learned[0].end())};
  row.add_peer("best order", 1 / theirs, theirs / mine);
  row.calls = steps;
  return {row};
}

}  // namespace velo::bench
