// Tokens to their experts and back over two simulated hosts of four ranks, each a thread.
//
// Whatever crosses between the hosts first passes a lane (a token bucket for each host) of an
// eighth of the bandwidth that crossing bytes have without it; then the call is made, so that
// nothing overlaps. all_to_all_v sends a copy for each expert, as tokens laid out by expert are;
// laying them out is timed, since velo_group_dispatch does it too. On the way back the peer is
// velo_group_combine itself, of all ranks as if they were one host's: every expert's row crosses,
// and is added where it arrives. Results are compared, and the bytes printed; numbers are small and
// whole, so that sums are exact in any order.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "bench/comm/scenes.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "velo/velo.h"

namespace velo::bench {
namespace {

constexpr int hosts = 2, per_host = 4, ranks = hosts * per_host, top = 8, experts_a_rank = 8;
constexpr std::int64_t tokens = 128, width = 4096;  // bytes of a token
constexpr double slower = 8;

// A link between hosts: bytes leave one after the other.
class lane {
 public:
  double rate = 0;  // bytes a second; 0: without a bound
  void pass(std::int64_t bytes) {
    if (rate == 0) return;
    double end = 0;
    {
      const std::lock_guard<std::mutex> lock(lock_);
      free_ = std::max(free_, now()) + static_cast<double>(bytes) / rate;
      end = free_;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(end - now()));
  }

 private:
  std::mutex lock_;
  double free_ = 0;
};

using bytes = std::vector<unsigned char>;
using numbers = std::vector<std::int64_t>;

struct rank_of_hosts {
  velo_context context = nullptr;
  velo_stream stream = nullptr;
  velo_group whole = nullptr, inside = nullptr, across = nullptr, alone = nullptr;
  bytes in = bytes(tokens * width), packed = bytes(tokens * top * width), flat, deduped;
  bytes flat_sums = in, sums = in;
  std::vector<std::int32_t> targets;
  std::vector<float> weights = std::vector<float>(tokens * top, 0.5f);
  numbers takes = numbers(ranks, 0);  // rows of each rank
  std::int64_t copies_cross = 0, tokens_cross = 0;
  // Bytes of experts' rows, and of sums, that leave here.
  std::int64_t rows_back = 0, sums_back = 0;
};

// The ways that are measured in turn: dispatch by copies and deduplicated, combine row by row and
// as sums.
enum way { copies, dispatched, row_by_row, combined, ways };

velo_tensor tensor(void* data, velo_dtype dtype, const std::int64_t* shape, int rank) {
  return {data, {VELO_DEVICE_CPU, 0}, rank, dtype, shape, nullptr, 0};
}
constexpr velo_dtype u8{VELO_DTYPE_UINT, 8, 1}, i32{VELO_DTYPE_INT, 32, 1},
    bf16{VELO_DTYPE_BFLOAT, 16, 1}, f32{VELO_DTYPE_FLOAT, 32, 1};

class scene {
 public:
  scene() {
    for (int r = 0; r < ranks; ++r) open(all_[r]);
    std::mt19937 random(17);
    for (int r = 0; r < ranks; ++r) route(r, random);
    for (rank_of_hosts& one : all_) {
      std::int64_t rows = 0;
      for (const std::int64_t n : one.takes) rows += n;
      one.flat.resize(static_cast<std::size_t>(rows * width));
      one.deduped.resize(one.flat.size());
    }
    std::vector<velo_context> contexts;
    for (const rank_of_hosts& one : all_) contexts.push_back(one.context);
    group(contexts, [this](std::size_t i) -> velo_group& { return all_[i].whole; });
    for (std::size_t host = 0; host < hosts; ++host)
      group({contexts.begin() + per_host * host, contexts.begin() + per_host * (host + 1)},
            [&](std::size_t i) -> velo_group& { return all_[per_host * host + i].inside; });
    for (std::size_t place = 0; place < per_host; ++place)
      group({contexts[place], contexts[per_host + place]},
            [&](std::size_t i) -> velo_group& { return all_[per_host * i + place].across; });
    velo_group_desc itself = VELO_GROUP_DESC_INIT;  // AUTO would join the ranks that mpirun started
    itself.transport = VELO_TRANSPORT_SELF;
    itself.rank = 0, itself.size = 1;
    for (rank_of_hosts& one : all_) require(velo_group_create(one.context, &itself, &one.alone));
    for (int r = 0; r < ranks; ++r) count_back(r);
  }
  ~scene() {
    for (const rank_of_hosts& one : all_) velo_context_destroy(one.context);
  }
  scene(const scene&) = delete;

  // Seconds of each call of the slowest rank.
  std::vector<std::vector<double>> measure(double seconds) {
    std::vector<std::vector<double>> took(ways * ranks);
    const double until = now() + seconds;
    std::atomic<int> last{400};
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        rank_of_hosts& me = all_[r];
        for (int round = 0; round < last; ++round) {
          if (r == 0 && round > 3 && now() > until) last = round + 1;
          for (int way = 0; way < ways; ++way) {
            require(velo_group_barrier(me.stream, me.whole));
            const double begin = now();
            call(r, static_cast<bench::way>(way));
            took[ways * static_cast<std::size_t>(r) + static_cast<std::size_t>(way)].push_back(
                now() - begin);
            require(velo_group_barrier(me.stream, me.whole));
          }
          if (me.flat != me.deduped || me.flat_sums != me.sums) {
            std::fprintf(stderr, "bench_comm: a wrong result of velo_group_%s\n",
                         me.flat != me.deduped ? "dispatch" : "combine");
            std::exit(2);
          }
        }
      });
    for (std::thread& one : threads) one.join();
    std::vector<std::vector<double>> slowest(ways);
    for (std::size_t round = 1; round < took[0].size(); ++round)
      for (std::size_t way = 0; way < ways; ++way) {
        double most = 0;
        for (std::size_t r = 0; r < ranks; ++r) most = std::max(most, took[ways * r + way][round]);
        slowest[way].push_back(most);
      }
    return slowest;
  }
  // Bytes that leave the host that sends most.
  std::int64_t crossing(way by) const {
    std::int64_t most = 0;
    for (int host = 0; host < hosts; ++host) {
      std::int64_t all = 0;
      for (int place = 0; place < per_host; ++place)
        all += crossing_of(host * per_host + place, by);
      most = std::max(most, all);
    }
    return most;
  }
  void throttle(double rate) {
    for (lane& one : lanes_) one.rate = rate;
  }

 private:
  static void open(rank_of_hosts& one) {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.threads = 1;
    require(velo_context_create(&desc, &one.context));
    require(velo_context_stream(one.context, &one.stream));
  }
  template <class Place>
  static void group(const std::vector<velo_context>& contexts, Place&& place) {
    std::vector<velo_group> made(contexts.size());
    require(velo_group_create_local(contexts.data(), static_cast<std::int32_t>(contexts.size()),
                                    nullptr, made.data()));
    for (std::size_t i = 0; i < made.size(); ++i) place(i) = made[i];
  }
  // Eight different experts for each token, evenly.
  void route(int rank, std::mt19937& random) {
    rank_of_hosts& me = all_[rank];
    for (std::size_t i = 0; i < me.in.size(); i += 2) {
      const float number = static_cast<float>(random() % 16);
      std::memcpy(&me.in[i], reinterpret_cast<const char*>(&number) + 2, 2);  // bf16
    }
    for (std::int64_t token = 0; token < tokens; ++token) {
      std::set<int> experts;
      while (experts.size() < top)
        experts.insert(static_cast<int>(random() % (ranks * experts_a_rank)));
      bool crosses = false;
      for (const int expert : experts) {
        const int to = expert / experts_a_rank;
        me.targets.push_back(to);
        ++all_[to].takes[static_cast<std::size_t>(rank)];
        me.copies_cross += to / per_host != rank / per_host;
        crosses = crosses || to / per_host != rank / per_host;
      }
      me.tokens_cross += crosses;
    }
  }
  // A rank sends its experts' rows, or the sums of those of its host for its peer.
  void count_back(int rank) {
    rank_of_hosts& me = all_[rank];
    for (int from = 0; from < ranks; ++from)
      if (from / per_host != rank / per_host)
        me.rows_back += me.takes[static_cast<std::size_t>(from)] * width;
    const rank_of_hosts& peer = all_[(rank + per_host) % ranks];
    for (std::int64_t token = 0; token < tokens; ++token) {
      const auto first = peer.targets.begin() + token * top;
      const auto here = std::count_if(
          first, first + top, [&](std::int32_t to) { return to / per_host == rank / per_host; });
      me.sums_back += here == 0 ? 0 : here == 1 ? width : 2 * width;
    }
  }
  std::int64_t crossing_of(int rank, way by) const {
    const rank_of_hosts& me = all_[rank];
    switch (by) {
      case copies:
        return me.copies_cross * width;
      case dispatched:
        return me.tokens_cross * (width + top * 4) + 8;
      case row_by_row:
        return me.rows_back;
      default:
        return me.sums_back + me.tokens_cross * top * 8 + 8;
    }
  }
  void call(int rank, way by) {
    lanes_[rank / per_host].pass(crossing_of(rank, by));
    rank_of_hosts& me = all_[rank];
    if (by == copies) by_copies(rank);
    if (by == dispatched) by_dispatch(rank);
    if (by == row_by_row) by_combine(rank, me.whole, me.alone, me.flat_sums);
    if (by == combined) by_combine(rank, me.inside, me.across, me.sums);
  }

  void by_copies(int rank) {
    rank_of_hosts& me = all_[rank];
    numbers gives, takes = me.takes;
    std::int64_t end = 0;
    for (int to = 0; to < ranks; ++to) {
      const std::int64_t begin = end;
      for (std::size_t i = 0; i < me.targets.size(); ++i)
        if (me.targets[i] == to) {
          std::memcpy(me.packed.data() + end,
                      me.in.data() + static_cast<std::int64_t>(i) / top * width, width);
          end += width;
        }
      gives.push_back(end - begin);
    }
    for (std::int64_t& one : takes) one *= width;
    const auto out = static_cast<std::int64_t>(me.flat.size());
    const velo_tensor from = tensor(me.packed.data(), u8, &end, 1),
                      to = tensor(me.flat.data(), u8, &out, 1);
    require(velo_group_all_to_all_v(me.stream, me.whole, &from, gives.data(), nullptr, takes.data(),
                                    nullptr, &to));
  }
  void by_dispatch(int rank) {
    rank_of_hosts& me = all_[rank];
    const std::int64_t rows[2] = {tokens, width}, each[2] = {tokens, top},
                       gets[2] = {static_cast<std::int64_t>(me.deduped.size()) / width, width};
    const velo_tensor from = tensor(me.in.data(), u8, rows, 2),
                      targets = tensor(me.targets.data(), i32, each, 2),
                      to = tensor(me.deduped.data(), u8, gets, 2);
    require(velo_group_dispatch(me.stream, me.inside, me.across, &from, &targets, me.takes.data(),
                                &to));
  }
  void by_combine(int rank, velo_group inside, velo_group across, bytes& out) {
    rank_of_hosts& me = all_[rank];
    const std::int64_t rows[2] = {tokens, width / 2}, each[2] = {tokens, top},
                       had[2] = {static_cast<std::int64_t>(me.flat.size()) / width, width / 2};
    const velo_tensor from = tensor(me.flat.data(), bf16, had, 2),
                      targets = tensor(me.targets.data(), i32, each, 2),
                      weights = tensor(me.weights.data(), f32, each, 2),
                      to = tensor(out.data(), bf16, rows, 2);
    require(velo_group_combine(me.stream, inside, across, &from, me.takes.data(), &targets,
                               &weights, &to));
  }

  rank_of_hosts all_[ranks];
  lane lanes_[hosts];
};

}  // namespace

std::vector<result> dispatch_rows(double seconds) {
  scene all;
  const auto much = static_cast<double>(all.crossing(copies));
  all.throttle(much / quantile(all.measure(seconds / 2)[copies], 0.25) / slower);
  const std::vector<std::vector<double>> took = all.measure(2 * seconds);
  const auto row_of = [&](const char* name, way by, const char* peer, way other) {
    std::printf("%s: %.2f MB leave a host, %.2f MB by %s\n", name,
                static_cast<double>(all.crossing(by)) / 1e6,
                static_cast<double>(all.crossing(other)) / 1e6, peer);
    result row;
    row.name = name;
    row.shape = "top 8 of 64, 2 x 4 ranks";
    row.residency = "local";
    row.unit = "GB/s";
    row.type = dtype::bf16;
    row.threads = ranks;
    const double mine = quantile(took[by], 0.25), theirs = quantile(took[other], 0.25);
    const auto bytes_of_all = static_cast<double>(all.crossing(other));
    row.rates = {bytes_of_all / mine / 1e9};
    row.limits = {0};
    row.p25s = {mine};
    row.mins = {*std::min_element(took[by].begin(), took[by].end())};
    row.add_peer(peer, bytes_of_all / theirs / 1e9, theirs / mine);
    row.calls = static_cast<int>(took[by].size());
    return row;
  };
  return {row_of("dispatch", dispatched, "all_to_all_v", copies),
          row_of("combine", combined, "row by row", row_by_row)};
}

}  // namespace velo::bench
