// A simulator for schedules whose stages take their units in order, as nearly all do: the same
// times as sched/simulate/simulate.cpp, in half of the time.
//
// In order, the outputs of a stage are a count, and those that the next stage has not taken are a
// short queue of times. The whole state is some hundred bytes for each rank and stage, which stay
// in cache, instead of 16 bytes for each stage and unit. The schedule is not examined first: a run
// that meets a unit out of order, or an action that is neither forward nor backward, ends without a
// result.
#pragma once

#include <vector>

#include "sched/simulate/simulate.hpp"

namespace velo::sched {

// Returns false if the schedule is not in order, or if costs rule it out. Else the results are
// those of simulate.
bool simulate_in_order(const schedule& pipeline, const ticks& scale, std::vector<stuck_rank>& stuck,
                       simulation& result);

// Whether such a run does every action once, in order and to its end, so that the schedule has no
// violation. false: unknown.
bool is_sound_in_order(const schedule& pipeline);

}  // namespace velo::sched
