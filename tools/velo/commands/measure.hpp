// What this machine can do here and now, measured without velo: the arithmetic of the context's
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

// Of one thread, and of as many as the context has where these are more.
std::vector<limits> measure(const velo::context& context);

}  // namespace command
