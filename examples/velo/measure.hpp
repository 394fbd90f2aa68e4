// What this machine gives velo here and now: rates of a large product and of a large copy, each
// measured for a fraction of a second on the context's threads.
#pragma once

#include <velo/velo.hpp>

namespace command {

struct limits {
  double matmul_f32;  // Gflop/s of velo_matmul, 1024 x 1024 x 1024
  double matmul_bf16;
  double copy;  // GB/s read and written by one thread's memcpy of 128 MiB
};

limits measure(velo::context& context);

}  // namespace command
