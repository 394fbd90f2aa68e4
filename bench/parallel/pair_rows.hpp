// Rows that pair a call of velo with one peer on two ranks: both take turns, as threads and as
// processes, and their results are compared after the last round.
#pragma once

#include <cstdio>
#include <string>

#include "bench/parallel/scenes.hpp"

namespace velo::bench {

enum contender { ours, peer, contenders };
static_assert(contenders <= board::most_calls);

// The name of a row, and the way in which its calls are timed.
struct pair_row {
  std::string name;
  dtype type;
  std::string shape;
  const char* peer;        // "composition", "whole"
  bool in_cache = false;   // each timed call follows an untimed one of its kind
  int calls = contenders;  // that take turns; those behind the two are the caller's
};

inline result result_of(const pair_row& r, const char* by, const board& all) {
  result made;
  made.name = r.name;
  made.shape = r.shape;
  made.residency = by;
  made.unit = "calls/s";
  made.type = r.type;
  made.threads = ranks;
  const double p25 = all.slower(ours, 0.25), other = all.slower(peer, 0.25);
  made.rates = {1 / p25};
  made.limits = {0};
  made.p25s = {p25};
  made.mins = {all.slower(ours, 0)};
  made.add_peer(r.peer, 1 / other, other / p25);
  return made;
}

// Calls: made from `what` and a rank; has call(contender) and is_right(). false: a result was wrong
// and printed.
template <class Calls, class What>
bool measure_pair(const pair_row& r, const What& what, const pair_options& set, board& all,
                  const row_taker& take) {
  for (const char* by : {"local", "shm"}) {
    const std::string name = r.name + " " + name_of(r.type) + " " + r.shape + " " + by;
    if (name.find(set.filter) == std::string::npos) continue;
    all.rounds = board::most_rounds;
    const rank_body body = [&](const rank_of& me) {
      Calls one(what, me);
      const auto call = [&one](int which) { one.call(which); };
      alternate(me, all, set.seconds, r.calls, call, r.in_cache);
      if (!one.is_right()) all.wrong = 1;
    };
    by_way(by, body);
    if (all.wrong != 0) {
      std::fprintf(stderr, "bench_parallel: wrong result: %s\n", name.c_str());
      return false;
    }
    take(result_of(r, by, all), all.rounds);
  }
  return true;
}

}  // namespace velo::bench
