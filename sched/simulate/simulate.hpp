// The simulator: when every action begins and ends, if each begins as soon as its rank is free and
// what it needs is there.
//
// Ranks are machines that run their rows until an action needs what is not there yet; who makes it
// wakes who waits for it. Nothing is ever chosen, so the result does not depend on the order in
// which ranks are run, and ranks that still wait when none can run would wait for ever. One pass
// over all actions, O(1) each (about 10 ns); memory for two times a stage and unit, and for a span
// an action where spans are asked for.
//
// A message leaves when its action ends and arrives `latency` later, beside whatever ranks compute;
// where messages take the way from one rank to another for some time, it first waits for those
// before it. Copies to the host and back run beside, too, one after another, and so do a rank's
// collectives: they begin when the rank comes to them, and who needs what they bring waits for it.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/simulate/held.hpp"

namespace velo::sched {

using spans = std::vector<std::vector<span>>;  // by rank and action

struct rank_times {
  std::int64_t first = 0, last = 0;  // begin of its first action, end of its last
  std::int64_t work = 0;             // what its actions take
  std::int64_t peak = 0;             // most activations held, as holdings counts them
  std::int64_t host_peak = 0;        // most of them on the host
};

struct simulation {
  ticks scale;
  std::vector<rank_times> ranks;
  std::int64_t makespan() const;  // all begin at 0
  std::int64_t work() const;      // of the rank that works least
  std::int64_t sigma() const;     // the most a rank is idle between its first and last action
};

// A rank that waits for ever, at which action of its row.
struct stuck_rank {
  std::int32_t rank;
  std::int64_t index;
};

// spans: filled where it is given. stuck: empty afterwards unless ranks wait for each other; times
// of actions that never begin are not in the result then.
simulation simulate(const schedule& what, const ticks& scale, std::vector<stuck_rank>& stuck,
                    spans* record = nullptr);

}  // namespace velo::sched
