// Ranks as threads and as processes; see the header.
#include "bench/comm/two_ranks.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bench/harness/goals.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "bench/limits/machine.hpp"

namespace velo::bench {
namespace {

void pin(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  require_done(sched_setaffinity(0, sizeof one, &one), "sched_setaffinity");
}

void join(rank_of& me, velo_group* group, const std::string& name) {
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.transport = VELO_TRANSPORT_SHM, desc.pool = me.pool;
  desc.name = name.c_str(), desc.rank = me.number, desc.size = ranks;
  require(velo_group_create(me.context, &desc, group));
}

}  // namespace

void rank_of::open(int rank) {
  number = rank;
  velo_context_desc one = VELO_CONTEXT_DESC_INIT;
  one.threads = 1;
  require(velo_context_create(&one, &context));
  require(velo_context_stream(context, &stream));
}

board& board::make() {
  void* shared =
      mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require_done(shared == MAP_FAILED ? -1 : 0, "mmap");
  return *static_cast<board*>(shared);
}

double board::slower(int call, double at) const {
  std::vector<double> slowest;
  for (int round = 2; round < rounds; ++round)
    slowest.push_back(std::max(seconds[0][call][round], seconds[1][call][round]));
  return at == 0 ? *std::min_element(slowest.begin(), slowest.end()) : quantile(slowest, at);
}

void alternate(const rank_of& me, board& all, double seconds, int calls,
               const std::function<void(int)>& call, bool warms) {
  const double until = now() + seconds;
  for (int round = 0; round < all.rounds; ++round) {
    for (int i = 0; i < calls; ++i) {
      const int which = (i + round) % calls;
      if (warms) call(which);
      require(velo_group_barrier(me.stream, me.group));
      const double begin = now();
      call(which);
      all.seconds[me.number][which][round] = now() - begin;
    }
    if (me.number == 0 && round >= 8 && now() > until) all.rounds = round + 1;
    require(velo_group_barrier(me.stream, me.group));  // both ranks read the same `rounds` after it
  }
}

void by_threads(const rank_body& body) {
  rank_of members[ranks];
  velo_context contexts[ranks];
  velo_group first[ranks], second[ranks];
  for (int rank = 0; rank < ranks; ++rank) {
    members[rank].open(rank);
    contexts[rank] = members[rank].context;
  }
  require(velo_group_create_local(contexts, ranks, nullptr, first));
  require(velo_group_create_local(contexts, ranks, nullptr, second));
  std::thread threads[ranks];
  for (int rank = 0; rank < ranks; ++rank) {
    members[rank].group = first[rank], members[rank].second = second[rank];
    threads[rank] = std::thread([&, rank] {
      pin(rank);
      body(members[rank]);
    });
  }
  for (std::thread& one : threads) one.join();
  for (const velo_context one : contexts) velo_context_destroy(one);
}

namespace {

// Children, so that this process has no rank and each has memory of its own.
void by_children(bool share, const rank_body& body) {
  pid_t children[ranks];
  for (int rank = 0; rank < ranks; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0) continue;
    pin(rank);
    rank_of me;
    me.open(rank);
    velo_pool_desc shared = VELO_POOL_DESC_INIT;
    shared.kind = VELO_POOL_SHARED;
    if (share) require(velo_pool_create(&shared, &me.pool));
    const std::string name = "bench-" + std::to_string(getppid());
    join(me, &me.group, name + "a");
    join(me, &me.second, name + "b");
    body(me);
    velo_context_destroy(me.context);
    velo_pool_destroy(me.pool);
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) std::exit(2);
  }
}

}  // namespace

void by_processes(const rank_body& body) {
  by_children(false, body);
}

void by_processes_with_pools(const rank_body& body) {
  by_children(true, body);
}

void by_way(const char* way, const rank_body& body) {
  constexpr void (*makers[])(const rank_body&) = {by_threads, by_processes,
                                                  by_processes_with_pools};
  for (int i = 0; i < 3; ++i)
    if (std::strcmp(way, all_ways[i]) == 0) return makers[i](body);
}

double line_transit() {
  constexpr int rounds = 20000;
  alignas(128) std::atomic<int> line{0};
  const auto pass = [&line](int rank) {
    pin(rank);
    for (int i = rank; i < 2 * rounds; i += 2) {
      while (line.load(std::memory_order_acquire) != i) continue;
      line.store(i + 1, std::memory_order_release);
    }
  };
  const double begin = now();
  std::thread first(pass, 0), second(pass, 1);
  first.join(), second.join();
  return (now() - begin) / (2 * rounds);
}

bool read_options(int argc, char** argv, const char* bench, pair_options& to) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      to.json = true;
    } else if (word == "--seconds" && i + 1 < argc) {
      to.seconds = std::atof(argv[++i]);
    } else if (word == "--filter" && i + 1 < argc) {
      to.filter = argv[++i];
    } else {
      std::fprintf(stderr, "%s: unknown option %s; it takes --seconds S, --filter TEXT, --json\n",
                   bench, word.c_str());
      return false;
    }
  }
  return true;
}

int judge_pairs(const char* list, const std::vector<result>& results, bool json) {
  const judgement j =
      judge(VELO_BENCH_FOLDER "/goals.json", list, identify_machine().kind, results);
  print_judgement(json ? stderr : stdout, j);
  const bool all = std::all_of(j.verdicts.begin(), j.verdicts.end(),
                               [](const verdict& v) { return v.fraction >= 1; });
  return all ? 0 : 1;
}

}  // namespace velo::bench
