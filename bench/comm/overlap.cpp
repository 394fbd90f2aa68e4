// Gradient buckets reduced behind arithmetic.
//
// Two placements. "one computes": rank 0 computes on the first processor, the collectives of both
// ranks are carried out by the workers of their queues on the second. "both compute": each rank
// computes, and the workers take what they get. Hidden: 1 - (both together - arithmetic alone) /
// collectives alone, of the slowest rank's times, medians of rounds in turn; at least 0. MPI's
// arithmetic takes as long as MPI's own collectives do.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "bench/comm/scenes.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "velo/velo.h"

namespace velo::bench {
namespace {

constexpr int buckets = 64, rounds = 9;
constexpr std::int64_t elements = 512 << 10;  // of a bucket: 1 MiB of bfloat16

void stay_on(std::initializer_list<int> processors) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const int one : processors) CPU_SET(one, &all);
  require_done(sched_setaffinity(0, sizeof all, &all), "sched_setaffinity");
}

// Arithmetic in registers.
void work(std::int64_t times) {
  double chains[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (std::int64_t i = 0; i < times; ++i)
    for (double& one : chains) one = one * 0.999999 + 1e-6;
  volatile double kept =
      chains[0] + chains[1] + chains[2] + chains[3] + chains[4] + chains[5] + chains[6] + chains[7];
  static_cast<void>(kept);
}

std::int64_t times_in(double seconds) {
  constexpr std::int64_t sample = 20000000;
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double begin = now();
    work(sample);
    least = std::min(least, now() - begin);
  }
  return static_cast<std::int64_t>(seconds / least * sample);
}

// The time of the slowest rank.
double timed(const std::function<void()>& body) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now();
  body();
  const double took = now() - begin;
  double slowest = 0;
  MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

struct engine {
  std::function<void()> start, finish;
};

// The share that is hidden, and the seconds of the collectives alone.
struct hidden {
  double share, alone;
};

hidden measure(const engine& by, bool computes) {
  const auto alone = [&] {
    by.start();
    by.finish();
  };
  std::vector<double> collectives, arithmetic, both;
  timed(alone);
  for (int round = 0; round < 3; ++round) collectives.push_back(timed(alone));
  std::int64_t times = computes ? times_in(median(collectives)) : 0;
  collectives.clear();
  for (int round = 0; round < rounds; ++round) {
    collectives.push_back(timed(alone));
    arithmetic.push_back(timed([&] { work(times); }));
    both.push_back(timed([&] {
      by.start();
      work(times);
      by.finish();
    }));
  }
  const double base = median(collectives);
  constexpr double least = 1e-6;  // 0: a row that was not measured
  return {std::max(least, 1 - (median(both) - median(arithmetic)) / base), base};
}

struct velo_side {
  velo_context context = nullptr;
  velo_stream queue = nullptr;
  velo_group group = nullptr;

  // Workers run where the caller may.
  velo_side() {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.threads = 1;
    require(velo_context_create(&desc, &context));
    require(velo_stream_create(context, &queue));
    require(velo_group_create(context, nullptr, &group));
  }
  ~velo_side() { velo_context_destroy(context); }
  velo_side(const velo_side&) = delete;

  engine reduces(std::vector<std::uint16_t>& x) const {
    return {[this, &x] {
              for (std::int64_t i = 0; i < buckets; ++i) {
                const velo_tensor one{x.data() + i * elements,
                                      {VELO_DEVICE_CPU, 0},
                                      1,
                                      {VELO_DTYPE_BFLOAT, 16, 1},
                                      &elements,
                                      nullptr,
                                      0};
                require(velo_group_all_reduce(queue, group, nullptr, &one, &one));
              }
            },
            [this] { require(velo_stream_synchronize(queue)); }};
  }
};

engine mpi_reduces(std::vector<std::uint16_t>& x, std::vector<MPI_Request>& open, MPI_Op sum) {
  return {[&x, &open, sum] {
            for (std::size_t i = 0; i < buckets; ++i)
              MPI_Iallreduce(MPI_IN_PLACE, x.data() + i * elements, static_cast<int>(elements),
                             MPI_UINT16_T, sum, MPI_COMM_WORLD, &open[i]);
          },
          [&open] { MPI_Waitall(buckets, open.data(), MPI_STATUSES_IGNORE); }};
}

result row_of(const char* shape, const hidden& velo, const hidden& mpi) {
  result row;
  row.name = "overlap";
  row.shape = shape;
  row.residency = "shm";
  row.unit = "hidden";
  row.type = dtype::bf16;
  row.threads = 2;
  row.rates = {velo.share};
  row.limits = {1};
  row.p25s = row.mins = {velo.alone};
  row.add_peer("OpenMPI", mpi.share, velo.share / std::max(mpi.share, 0.01));
  row.calls = rounds;
  return row;
}

}  // namespace

std::vector<result> overlap_rows(MPI_Op bf16_sum) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<result> rows;
  if (ranks != 2) return rows;
  cpu_set_t before;
  require_done(sched_getaffinity(0, sizeof before, &before), "sched_getaffinity");
  std::vector<std::uint16_t> x(buckets * elements);
  std::vector<MPI_Request> open(buckets);
  const engine mpi = mpi_reduces(x, open, bf16_sum);
  for (const bool both : {false, true}) {
    both ? stay_on({0, 1}) : stay_on({1});
    const velo_side side;
    if (!both) stay_on({rank});
    const bool computes = both || rank == 0;
    const hidden ours = measure(side.reduces(x), computes), theirs = measure(mpi, computes);
    rows.push_back(row_of(both ? "both compute" : "one computes", ours, theirs));
  }
  require_done(sched_setaffinity(0, sizeof before, &before), "sched_setaffinity");
  return rows;
}

}  // namespace velo::bench
