// Where a run's time goes: a row for each operator that it called, the longest first.
//
// velo counts calls, their time, and the least time that the machine's limits allow for them
// (velo_op_get_counts); the share is the least time over the time. Bytes are taken to come from
// memory, so a share beyond 100 % means data that stayed in a cache. Cost: 0.1 us a call.
#pragma once

#include <velo/velo.hpp>

#include "examples/decoder/report/console.hpp"
#include "examples/decoder/report/machine_rates.hpp"

namespace pretrain {

// From here on the context's calls are counted. machine: all 0 if it was not measured.
void count_operators(velo::context& context, const decoder::machine_rates& machine, bool bf16);

void say_operators(decoder::console& to, const velo::context& context);

}  // namespace pretrain
