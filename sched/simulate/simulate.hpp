// The simulator: the times of all actions, if each begins as soon as its rank is free and its
// inputs are available.
//
// Each rank runs its row until an action lacks an input; the rank that makes the input wakes it.
// There is no choice, so the result does not depend on the order in which ranks run, and ranks that
// still wait when none can run are deadlocked. One pass over all actions, O(1) each (about 10 ns);
// memory for two times of each stage and unit, and for a span of each action if spans are asked
// for.
//
// A message leaves when its action ends and arrives `latency` later, beside the ranks' work. If
// messages occupy their link for some time, they queue. Copies to and from the host run beside the
// ranks, one after another, as do a rank's collectives: they begin when the rank comes to them, and
// actions that need their results wait.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/simulate/held.hpp"

namespace velo::sched {

using spans = std::vector<std::vector<span>>;  // by rank and action

struct rank_times {
  std::int64_t first = 0, last = 0;  // begin of its first action, end of its last
  std::int64_t work = 0;             // the duration of its actions
  std::int64_t peak = 0;             // maximum of activations held, as holdings counts them
  std::int64_t host_peak = 0;        // their maximum on the host
};

struct simulation {
  ticks scale;
  std::vector<rank_times> ranks;
  std::int64_t makespan() const;  // all begin at 0
  std::int64_t work() const;      // of the rank that works least
  std::int64_t sigma() const;     // the most a rank is idle between its first and last action
};

// A rank that waits forever, and the index of its action.
struct stuck_rank {
  std::int32_t rank;
  std::int64_t index;
};

// spans: filled if given. stuck: empty afterwards unless ranks deadlock; the result then lacks the
// times of actions that never begin.
simulation simulate(const schedule& pipeline, const ticks& scale, std::vector<stuck_rank>& stuck,
                    spans* record = nullptr);

}  // namespace velo::sched
