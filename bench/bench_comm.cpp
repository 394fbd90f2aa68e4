// bench_comm: collectives of velo's groups beside OpenMPI's, on one host, started by mpirun:
//
//   mpirun -np 2 --bind-to none build/bench/bench_comm [--seconds S] [--keep-malloc] [--filter
//                                                      REGEX] [--torch PYTHON] [--json FILE]
//   mpirun -np 4 --oversubscribe --mca mpi_yield_when_idle 1 --bind-to none build/bench/bench_comm
//   ..
//
// Every rank times each call by itself; a call costs what the slowest rank needed. Inputs are
// written anew before each call, a barrier of MPI before each call lines the ranks up, contenders
// alternate call by call, and every result is checked. Tensors are private to their process, but
// those of `pool`, which lie in shared pools that the ranks of its group lend. velo over threads
// (local) is measured by rank 0 alone, while the others sleep; collectives of up to 512 B are
// measured as starts of planned ones, too. --keep-malloc: what is freed stays with the process, so
// that large buffers of OpenMPI's are not new pages each time. --torch: the interpreter whose torch
// has Gloo, which takes its turn behind the others (comm/gloo.hpp); default: that of $VIRTUAL_ENV
// or .venv. Behind the collectives come scenes (comm/scenes.hpp). --filter: only collectives whose
// "name dtype shape" matches, and scenes whose name does. Goals: goals.json, comm, of 2, 4 and 8
// ranks.
#include <malloc.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "bench/comm/gloo.hpp"
#include "bench/comm/scenes.hpp"
#include "bench/comm/tensors.hpp"
#include "bench/harness/goals.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "bench/harness/result.hpp"
#include "bench/limits/machine.hpp"
#include "velo/velo.h"

namespace velo::bench {
namespace {

constexpr std::int64_t planned_up_to = 512;  // bytes: beyond, a call costs little beside its data
constexpr std::int64_t pooled_from = 64 << 10;  // what lies in shared pools is read there

// OpenMPI knows no bfloat16: a reduction of the user's, which it calls for each segment.
void add_bf16(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const std::uint16_t*>(in);
  auto* b = static_cast<std::uint16_t*>(inout);
  for (int i = 0; i < *count; ++i) {
    const std::uint32_t x = std::uint32_t{a[i]} << 16, y = std::uint32_t{b[i]} << 16;
    float f, g;
    std::memcpy(&f, &x, 4);
    std::memcpy(&g, &y, 4);
    f += g;
    std::uint32_t sum;
    std::memcpy(&sum, &f, 4);
    b[i] = static_cast<std::uint16_t>((sum + 0x7fff + (sum >> 16 & 1)) >> 16);
  }
}

void call_mpi(tensors& t, MPI_Op bf16_sum) {
  const bool narrow = t.type() == dtype::bf16;
  const MPI_Datatype type = narrow ? MPI_UINT16_T : MPI_FLOAT;
  const MPI_Op sum = narrow ? bf16_sum : MPI_SUM;
  const int whole = static_cast<int>(t.in_count()), part = static_cast<int>(t.part());
  switch (t.what()) {
    case op::barrier:
      MPI_Barrier(MPI_COMM_WORLD);
      return;
    case op::all_reduce:
      MPI_Allreduce(t.in(), t.out(), whole, type, sum, MPI_COMM_WORLD);
      return;
    case op::reduce_scatter:
      MPI_Reduce_scatter_block(t.in(), t.out(), part, type, sum, MPI_COMM_WORLD);
      return;
    case op::all_gather:
      MPI_Allgather(t.in(), part, type, t.out(), part, type, MPI_COMM_WORLD);
      return;
    case op::all_to_all:
      MPI_Alltoall(t.in(), part, type, t.out(), part, type, MPI_COMM_WORLD);
      return;
    case op::broadcast:
      MPI_Bcast(t.in(), whole, type, 0, MPI_COMM_WORLD);
      return;
  }
}

// The arguments of a call of velo's, for as long as their tensors.
struct arguments {
  explicit arguments(tensors& t)
      : type(t.type() == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                                     : velo_dtype{VELO_DTYPE_FLOAT, 32, 1}),
        in_count(t.in_count()),
        out_count(t.out_count()),
        in{t.in(), {VELO_DEVICE_CPU, 0}, 1, type, &in_count, nullptr, 0},
        out{t.out(), {VELO_DEVICE_CPU, 0}, 1, type, &out_count, nullptr, 0} {}
  arguments(const arguments&) = delete;

  const velo_dtype type;
  const std::int64_t in_count, out_count;
  const velo_tensor in, out;
};

struct velo_rank {
  velo_context context = nullptr;
  velo_stream stream = nullptr;
  velo_group group = nullptr;

  void open() {
    velo_context_desc one = VELO_CONTEXT_DESC_INIT;
    one.threads = 1;
    require(velo_context_create(&one, &context));
    require(velo_context_stream(context, &stream));
  }
  void call(tensors& t) const {
    const arguments a(t);
    switch (t.what()) {
      case op::barrier:
        return require(velo_group_barrier(stream, group));
      case op::all_reduce:
        return require(velo_group_all_reduce(stream, group, nullptr, &a.in, &a.out));
      case op::reduce_scatter:
        return require(velo_group_reduce_scatter(stream, group, nullptr, &a.in, &a.out));
      case op::all_gather:
        return require(velo_group_all_gather(stream, group, &a.in, &a.out));
      case op::all_to_all:
        return require(velo_group_all_to_all(stream, group, &a.in, &a.out));
      case op::broadcast:
        return require(velo_group_broadcast(stream, group, 0, &a.in));
    }
  }

  // A planned collective, whose start costs less than a call of small tensors.
  velo_collective plan(tensors& t) const {
    constexpr velo_collective_kind kinds[] = {
        VELO_COLLECTIVE_BARRIER,    VELO_COLLECTIVE_ALL_REDUCE, VELO_COLLECTIVE_REDUCE_SCATTER,
        VELO_COLLECTIVE_ALL_GATHER, VELO_COLLECTIVE_ALL_TO_ALL, VELO_COLLECTIVE_BROADCAST};
    const arguments a(t);
    velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
    desc.kind = kinds[static_cast<int>(t.what())];
    if (t.what() != op::barrier) desc.in = &a.in, desc.out = &a.out;
    velo_collective made = nullptr;
    require(velo_collective_create(group, &desc, &made));
    return made;
  }
};

void require_right(const tensors& t, const char* who, int round) {
  if (t.is_right(round)) return;
  std::fprintf(stderr, "bench_comm: a wrong result of %s by %s\n",
               op_names[static_cast<int>(t.what())], who);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

struct contender {
  const char* name;
  std::function<void(tensors&)> call;
  std::vector<double> seconds;
  tensors* on = nullptr;  // its own; nullptr: those of all
};

double slowest_of(double took) {
  double slowest = 0;
  MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

bool goes_on(int round, double until) {
  int all = round < 6 || (now() < until && round < 4000) ? 1 : 0;
  MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return all == 1;
}

// Calls in turn until the time is over, as rank 0 finds; the slowest rank's time of each.
void alternate(std::vector<contender>& all, tensors& t, double seconds) {
  const double until = now() + seconds;
  for (int round = 0; goes_on(round, until); ++round)
    for (contender& one : all) {
      tensors& on = one.on != nullptr ? *one.on : t;
      on.write(round);
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = now();
      one.call(on);
      const double slowest = slowest_of(now() - begin);
      require_right(on, one.name, round);
      if (round > 1) one.seconds.push_back(slowest);
    }
}

// The same of Gloo, which comes behind them: in between it would leave them cold caches.
std::vector<double> by_gloo(gloo& peer, const tensors& t, double seconds) {
  std::vector<double> all;
  const double until = now() + seconds;
  for (int round = 0; goes_on(round, until); ++round) {
    const double took = peer.call(round);
    if (took <= 0) {
      std::fprintf(stderr, "bench_comm: %s of %s by Gloo\n",
                   took < 0 ? "a wrong result" : "no answer", op_names[static_cast<int>(t.what())]);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const double slowest = slowest_of(took);
    if (round > 1) all.push_back(slowest);
  }
  return all;
}

// mpirun binds a process to one processor; its threads are to have one each.
void unbind() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int cpu = 0;
       cpu < std::min<int>(CPU_SETSIZE, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))); ++cpu)
    CPU_SET(cpu, &all);
  sched_setaffinity(0, sizeof all, &all);
}

// The same by threads of this process.
std::vector<double> by_threads(op what, dtype type, std::int64_t bytes, int ranks, double seconds) {
  cpu_set_t bound;
  sched_getaffinity(0, sizeof bound, &bound);
  unbind();
  std::vector<velo_rank> all(static_cast<std::size_t>(ranks));
  std::vector<velo_context> contexts;
  for (velo_rank& one : all) {
    one.open();
    contexts.push_back(one.context);
  }
  std::vector<velo_group> groups(all.size());
  require(velo_group_create_local(contexts.data(), ranks, nullptr, groups.data()));
  std::vector<std::vector<double>> took(all.size());
  const double until = now() + seconds;
  std::atomic<int> last{4000};
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      all[i].group = groups[i];
      tensors t(what, type, bytes, r, ranks);
      tensors none(op::barrier, dtype::f32, 4, r, ranks);
      for (int round = 0; round < last; ++round) {
        t.write(round);
        if (r == 0 && round > 6 && now() > until) last = round + 1;
        all[i].call(none);
        const double begin = now();
        all[i].call(t);
        took[i].push_back(now() - begin);
        all[i].call(none);  // checking would take the processor of a rank still in its call
        require_right(t, "threads", round);
        all[i].call(none);  // what `last` is, all read alike
      }
    });
  for (std::thread& one : threads) one.join();
  for (const velo_context one : contexts) velo_context_destroy(one);
  sched_setaffinity(0, sizeof bound, &bound);
  std::vector<double> slowest;
  for (std::size_t round = 2; round < took[0].size(); ++round) {
    double most = 0;
    for (const auto& one : took) most = std::max(most, one[round]);
    slowest.push_back(most);
  }
  return slowest;
}

// Until rank 0 comes, without using a processor.
void sleep_through() {
  MPI_Request all;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  for (int done = 0; done == 0; MPI_Test(&all, &done, MPI_STATUS_IGNORE)) usleep(500);
}

std::string size_text(std::int64_t bytes) {
  if (bytes < 1 << 10) return std::to_string(bytes) + " B";
  if (bytes < 1 << 20) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes >> 20) + " MiB";
}

result row_of(op what, dtype type, std::int64_t bytes, const char* by, int ranks,
              const std::vector<double>& velo, const std::vector<double>& mpi,
              const std::vector<double>& gloo) {
  result row;
  row.name = op_names[static_cast<int>(what)];
  row.shape = what == op::barrier ? "" : size_text(bytes);
  row.residency = by;
  row.unit = "GB/s";
  row.type = type;
  row.threads = ranks;
  const double mine = quantile(velo, 0.25);
  const auto rate = [&](double seconds) { return static_cast<double>(bytes) / seconds / 1e9; };
  row.rates = {rate(mine)};
  row.limits = {0};
  row.p25s = {mine};
  row.mins = {*std::min_element(velo.begin(), velo.end())};
  const auto add = [&](const char* peer, double theirs) {
    row.add_peer(peer, rate(theirs), theirs / mine);
  };
  add("OpenMPI", quantile(mpi, 0.25));
  if (!gloo.empty()) add("Gloo", quantile(gloo, 0.25));
  row.calls = static_cast<int>(velo.size());
  return row;
}

struct settings {
  double seconds = 0.4;
  std::regex filter{""};
  std::string python;
  const char* json = nullptr;

  bool wants(const std::string& row) const { return std::regex_search(row, filter); }
};

struct velo_ranks {
  velo_rank shm, mpi, pooled;
  velo_pool pool = nullptr;
};

std::vector<result> measure(const velo_ranks& by, MPI_Op bf16_sum, int rank, int ranks,
                            const settings& set) {
  std::vector<result> rows;
  gloo peer(set.python, VELO_BENCH_FOLDER "/bench_gloo.py");
  const auto one = [&](op what, dtype type, std::int64_t bytes) {
    const std::string name = op_names[static_cast<int>(what)];
    if (!set.wants(name + " " + name_of(type) + " " + size_text(bytes))) return;
    tensors t(what, type, bytes, rank, ranks);
    std::vector<contender> all = {{"OpenMPI", [&](tensors& x) { call_mpi(x, bf16_sum); }, {}},
                                  {"shm", [&](tensors& x) { by.shm.call(x); }, {}},
                                  {"mpi", [&](tensors& x) { by.mpi.call(x); }, {}}};
    std::optional<tensors> pooled;
    if (bytes >= pooled_from) {
      pooled.emplace(what, type, bytes, rank, ranks, by.pool);
      all.push_back({"pool", [&](tensors& x) { by.pooled.call(x); }, {}, &*pooled});
    }
    velo_collective planned = nullptr;
    if (bytes <= planned_up_to) {
      planned = by.shm.plan(t);
      all.push_back({"planned",
                     [&](tensors&) { require(velo_collective_start(by.shm.stream, planned)); },
                     {}});
    }
    alternate(all, t, set.seconds);
    std::vector<double> theirs;
    if (peer.take(name + " " + name_of(type) + " " + std::to_string(t.whole())))
      theirs = by_gloo(peer, t, set.seconds / 2);
    velo_collective_destroy(planned);
    std::vector<double> local;
    if (rank == 0) local = by_threads(what, type, bytes, ranks, set.seconds / 3);
    sleep_through();
    if (rank != 0) return;
    const std::size_t before = rows.size();
    for (std::size_t i = 1; i < all.size(); ++i)
      rows.push_back(
          row_of(what, type, bytes, all[i].name, ranks, all[i].seconds, all[0].seconds, theirs));
    rows.push_back(row_of(what, type, bytes, "local", ranks, local, all[0].seconds, theirs));
    for (std::size_t i = before; i < rows.size(); ++i) print_line(stdout, rows[i]);
  };
  one(op::barrier, dtype::f32, 8);
  for (const op what :
       {op::all_reduce, op::reduce_scatter, op::all_gather, op::all_to_all, op::broadcast})
    for (const std::int64_t bytes :
         {std::int64_t{8}, std::int64_t{512}, std::int64_t{4} << 10, std::int64_t{64} << 10,
          std::int64_t{1} << 20, std::int64_t{16} << 20, std::int64_t{64} << 20}) {
      one(what, dtype::f32, bytes);
      if (what == op::all_reduce) one(what, dtype::bf16, bytes);
    }
  return rows;
}

void add_rows(std::vector<result>& rows, const std::vector<result>& more, int rank) {
  for (const result& row : more) {
    if (rank == 0) print_line(stdout, row);
    rows.push_back(row);
  }
}

int finish(const std::vector<result>& rows, const settings& set) {
  if (set.json != nullptr) {
    FILE* out = std::fopen(set.json, "w");
    if (out == nullptr) return 2;
    for (const result& row : rows) print_json(out, row);
    std::fclose(out);
  }
  const judgement j = judge(VELO_BENCH_FOLDER "/goals.json", "comm", identify_machine().kind, rows);
  print_judgement(stdout, j);
  return std::all_of(j.verdicts.begin(), j.verdicts.end(),
                     [](const verdict& v) { return v.fraction >= 1; })
             ? 0
             : 1;
}

int run(int argc, char** argv) {
  settings set;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--keep-malloc") {
      mallopt(M_MMAP_THRESHOLD, 1 << 30);
      mallopt(M_TRIM_THRESHOLD, 1 << 30);
    } else if (word == "--seconds" && i + 1 < argc) {
      set.seconds = std::atof(argv[++i]);
    } else if (word == "--filter" && i + 1 < argc) {
      try {
        set.filter = argv[++i];
      } catch (const std::regex_error& problem) {
        std::fprintf(stderr, "bench_comm: --filter: %s\n", problem.what());
        return 2;
      }
    } else if (word == "--torch" && i + 1 < argc) {
      set.python = argv[++i];
    } else if (word == "--json" && i + 1 < argc) {
      set.json = argv[++i];
    } else {
      std::fprintf(stderr, "bench_comm: %s is no option of it\n", word.c_str());
      return 2;
    }
  }
  int level = 0, rank = 0, ranks = 1, code = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Op bf16_sum;
  MPI_Op_create(add_bf16, 1, &bf16_sum);
  velo_ranks by;
  velo_pool_desc shared = VELO_POOL_DESC_INIT;
  shared.kind = VELO_POOL_SHARED;
  require(velo_pool_create(&shared, &by.pool));
  for (velo_rank* one : {&by.shm, &by.mpi, &by.pooled}) {
    one->open();
    velo_group_desc desc = VELO_GROUP_DESC_INIT;
    desc.transport = one == &by.mpi ? VELO_TRANSPORT_MPI : VELO_TRANSPORT_SHM;
    if (one == &by.pooled) desc.pool = by.pool;
    require(velo_group_create(one->context, &desc, &one->group));
  }
  if (rank == 0) print_header(stdout);
  std::vector<result> rows = measure(by, bf16_sum, rank, ranks, set);
  if (set.wants("overlap")) add_rows(rows, overlap_rows(bf16_sum), rank);
  if (rank == 0) {
    unbind();
    if (set.wants("dispatch") || set.wants("combine"))
      add_rows(rows, dispatch_rows(5 * set.seconds), rank);
    if (set.wants("bucket order")) add_rows(rows, bucket_rows(), rank);
    if (set.wants("subnormal")) add_rows(rows, subnormal_rows(), rank);
    if (set.wants("signature")) add_rows(rows, signature_rows(), rank);
  }
  sleep_through();
  if (rank == 0) code = finish(rows, set);
  for (const velo_rank* one : {&by.shm, &by.mpi, &by.pooled}) velo_context_destroy(one->context);
  velo_pool_destroy(by.pool);
  MPI_Op_free(&bf16_sum);
  MPI_Finalize();
  return code;
}

}  // namespace
}  // namespace velo::bench

int main(int argc, char** argv) {
  return velo::bench::run(argc, argv);
}
