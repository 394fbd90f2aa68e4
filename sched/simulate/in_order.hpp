// The simulator of schedules in which every stage takes its units in order, as all do but a few:
// the same times as the other (sched/simulate/simulate.cpp) has, in half of the time.
//
// In order, what a stage has made is a number, and what the next has not taken yet a short queue of
// times; so the whole state is some hundred bytes a rank and stage, which the processor keeps near,
// where a mark a stage and unit would be 16 bytes each, far away. Nothing is asked of a schedule
// before: a run that meets a unit out of turn, or an action that is neither forward nor backward,
// ends without a result.
#pragma once

#include <vector>

#include "sched/simulate/simulate.hpp"

namespace velo::sched {

// False where the schedule is not of that sort, or costs are not. Else results are as those of
// simulate.
bool simulate_in_order(const schedule& what, const ticks& scale, std::vector<stuck_rank>& stuck,
                       simulation& result);

// Whether such a run does everything once, in order and to its end, so that nothing is wrong with
// the schedule; false: that is not known.
bool is_sound_in_order(const schedule& what);

}  // namespace velo::sched
