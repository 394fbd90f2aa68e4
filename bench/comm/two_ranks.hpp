// Two ranks of one thread each, on a processor of its own: threads of a local group, or processes
// that share memory. Their calls alternate, so that disturbances affect all of them alike.
//
// A call costs what the slower rank needed, from a barrier on. Times lie in memory that both ranks
// see; rank 0 ends the rounds when its time is over.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "bench/harness/result.hpp"
#include "velo/velo.h"

namespace velo::bench {

constexpr int ranks = 2;

struct rank_of {
  int number = 0;
  velo_context context = nullptr;
  velo_stream stream = nullptr;
  velo_group group = nullptr, second = nullptr;  // of the same ranks
  velo_pool pool = nullptr;                      // that the other rank reads in place

  void open(int rank);
};

// Memory that ranks share besides their group: when to stop, and how long each call took.
struct board {
  static constexpr int most_rounds = 4000, most_calls = 7;
  std::atomic<int> rounds;
  std::atomic<int> wrong;
  double seconds[ranks][most_calls][most_rounds];

  static board& make();  // for processes, too; lives as long as this one
  // The slower rank's seconds of a call, at a quantile of the rounds; 0: the least.
  double slower(int call, double at) const;
};

// Rounds of `calls` calls, each round beginning with another. warms: each timed call follows an
// untimed one of the same, which brings its tensors into the cache.
void alternate(const rank_of& me, board& all, double seconds, int calls,
               const std::function<void(int)>& call, bool warms = false);

// body(rank) on each rank, which has groups; returns when both are done.
using rank_body = std::function<void(const rank_of&)>;
void by_threads(const rank_body& body);
void by_processes(const rank_body& body);
void by_processes_with_pools(const rank_body& body);
// "local", "shm", "shm pool": ranks are threads, processes, processes with shared pools.
constexpr const char* all_ways[] = {"local", "shm", "shm pool"};
void by_way(const char* way, const rank_body& body);

// Seconds in which a cache line goes from the processor of one rank to that of the other. A virtual
// machine's processors may share a cache now and lie on two dies a second later: some 50 ns and
// some 200. Calls of small tensors take up to twice as long in the second case.
double line_transit();

// [--seconds S] [--filter TEXT] [--json]; prints an unknown option after the bench's name, and
// returns false.
struct pair_options {
  double seconds = 1;  // of a row
  bool json = false;
  std::string filter;
};
bool read_options(int argc, char** argv, const char* bench, pair_options& to);

// Prints the verdicts of a list of goals.json; returns the exit code, 0 if all were reached.
int judge_pairs(const char* list, const std::vector<result>& results, bool json);

}  // namespace velo::bench
