// The order of Megatron's interleaved schedule, which others change at some places.
#pragma once

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

// How chunks take turns; throws ARGUMENT where groups of micro-batches cannot.
turns interleaved_turns(const request& wanted);

// Forwards before a rank's first backward.
std::int32_t interleaved_warmup(const request& wanted, std::int32_t rank);

}  // namespace velo::sched
