// What this machine can do, measured for less than a second before training, without velo: loops in
// registers for arithmetic, plain walks over arrays for memory.
//
// So shares of these rates are shares of the machine, also where velo is slow. Arithmetic
// is that of the widest unit the context's instruction set offers for the model's dtype, on
// the threads of all ranks.
#pragma once

#include <array>
#include <velo/velo.hpp>

#include "examples/decoder/files/safetensors.hpp"

namespace decoder {

// How an operator goes through memory; each way has a rate of its own.
enum class walk : std::size_t {
  read,    // one stream in
  copy,    // one in, one out
  triad,   // two in, one out
  update,  // in place, beside others that are read
};

using walk_rates = std::array<double, 4>;  // bytes/s by walk

struct machine_rates {
  double flops;  // FLOP/s of a product
  walk_rates memory, cache;
  double cache_bytes;  // what fits in here moves at the cache's rates
};

// For so many ranks with contexts alike.
machine_rates measure_machine(const velo::context& context, element type, int ranks);

}  // namespace decoder
