// Rows of bench_sched: schedules carried out.
#pragma once

#include "bench/harness/result.hpp"

namespace velo::bench {

// The time of an action beside the host's functions, which do nothing: 1F1B on two threads, 10,000
// micro-batches, with the messages between.
result executor_overhead();

// How near a run comes to what its schedule promises: 1F1B on two processes, 1 MiB from stage to
// stage, functions of a millisecond or two. Rate: the makespan simulated from both ranks'
// functions' times over the one that came, of runs that both begin at once; the third best of nine.
result achieved_makespan();

}  // namespace velo::bench
