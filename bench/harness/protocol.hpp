// How a figure is made believable on a machine that others share.
//
// Candidates (velo first, then its peers) are interleaved call by call, so that whatever disturbs
// one disturbs all. Calls are grouped in blocks. Of calls under a millisecond the ratio is the
// median over 31 blocks of p25 peer / p25 velo; of longer calls, which a block cannot hold many of,
// the ratio of p25 over all calls, and the whole run is repeated at other moments (passes). There
// are fewer blocks, never fewer than 7, only where the time budget forces it. A call during which
// Linux took a processor away is set aside as long as enough undisturbed ones remain; where it
// must count and one thread does all the work, its CPU time counts. A cache row's call follows an
// untimed one of the same candidate, so that each finds its buffers as it left them; so does every
// call with two threads, after a pause in which the other libraries' workers stop spinning. Calls
// too short for the clock are timed in batches.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace velo::bench {

struct candidate {
  std::string name;
  std::function<void(int set)> call;  // works on the buffers numbered `set`
};

struct measuring {
  int threads = 1;
  int sets = 1;         // sets of buffers, used in turn so that none is found in cache by chance
  int blocks = 31;      // asked for
  double budget = 1.0;  // seconds for all candidates together
  bool warm = false;  // precede each timed call by an untimed one of the same candidate: cache rows
};

struct timing {
  double min = 0, p25 = 0, p50 = 0, p95 = 0;  // seconds a call
  int calls = 0;
  int disturbed = 0;  // of these, with an involuntary context switch
};

struct outcome {
  std::vector<timing> timings;                  // one a candidate
  std::vector<std::vector<double>> block_p25s;  // [candidate][block]
  bool long_calls = false;                      // some candidate takes a millisecond or more
};

outcome measure(const std::vector<candidate>& candidates, const measuring& how);

// How many times quicker `ours` is than `theirs`.
double speed_ratio(const outcome& result, std::size_t ours, std::size_t theirs);

double now();  // seconds of a clock that never goes back

// The value below which `share` of the values lie.
double quantile(std::vector<double> values, double share);

}  // namespace velo::bench
