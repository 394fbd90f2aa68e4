// The machine's limits here and now, measured without velo: the arithmetic of the context's
// instruction set in registers, and long walks through memory.
#pragma once

#include <vector>
#include <velo/velo.hpp>

namespace command {

struct limits {
  int threads;
  double f32, bf16;   // Gflop/s that a product can reach
  double read, copy;  // GB/s from and to memory
};

// The limits of one thread, and of the context's threads where it has more.
std::vector<limits> measure(const velo::context& context);

}  // namespace command
