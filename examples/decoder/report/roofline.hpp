// The roofline of a training step: the time its operators would take if each ran at the machine's
// limit, arithmetic or memory, whichever binds.
//
//   seconds = sum over operators of max(flops / peak, bytes / bandwidth of the operator's walk)
//
// Flops are those of products; sums of n terms count as 2 n. The arithmetic of elementwise
// operators always takes less time than their bytes and is left out, as are vectors of one number a
// row or a column. Bytes are those that an operator reads and writes when it runs alone; data that
// fits the last level of cache is taken to come from there. So the roofline is a bound for these
// operators in this order: only other, larger operators can beat it.
#pragma once

#include <vector>

#include "examples/decoder/report/machine_rates.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

struct operation {
  const char* name;
  double times;      // a step
  double flops;      // of one call
  double bytes;      // read and written by one call
  double footprint;  // different bytes that one call touches
  walk way;
};

// Every operator of a training step, in the order of their first calls.
std::vector<operation> step_operations(const model_settings& model, const data_settings& data,
                                       const narrow_settings& narrow);

// The time of one call at the machine's limit.
double seconds_of(const operation& one, const machine_rates& machine);

double roofline_seconds(const std::vector<operation>& all, const machine_rates& machine);

}  // namespace decoder
