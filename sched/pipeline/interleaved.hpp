// The order of Megatron's interleaved schedule, which other kinds modify.
#pragma once

#include "sched/pipeline/generate.hpp"

namespace velo::sched {

// The order of chunks; throws ARGUMENT if the groups of micro-batches do not allow one.
chunk_order interleaved_order(const request& wanted);

// Forwards before a rank's first backward.
std::int32_t interleaved_warmup(const request& wanted, std::int32_t rank);

}  // namespace velo::sched
