// The limits of this machine, measured for less than a second before training, without velo: loops
// in registers for arithmetic, plain walks over arrays for memory.
//
// Shares of these rates are therefore shares of the machine, also where velo is slow. Arithmetic is
// that of the widest unit that the context's instruction set has for the model's dtype, on the
// threads of all ranks.
#pragma once

#include <array>
#include <velo/velo.hpp>

#include "examples/decoder/files/safetensors.hpp"

namespace decoder {

// The ways in which operators access memory; each has a rate.
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
  double cache_bytes;  // arrays up to this size move at the cache's rates
};

// Measures for so many ranks with contexts like this one.
machine_rates measure_machine(const velo::context& context, element type, int ranks);

}  // namespace decoder
