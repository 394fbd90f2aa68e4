// What a kernel may use while it runs: threads, scratch, and the machine as the configuration lets
// it be seen.
//
// A context hands one out for the length of one operator, under its turn lock. Copying it is not
// meant; keeping a reference past the operator is an error.
#pragma once

#include "core/arena.hpp"
#include "core/cpu.hpp"
#include "core/parallel.hpp"

namespace velo::core {

struct execution {
  const parallel& threads;
  arena& scratch;
  core::isa isa;     // highest instruction set kernels may use
  bool jit;          // whether block kernels may be made at run time
  int optimization;  // 0 reference, 1 fused, 2 everything
  cache_sizes caches;
};

}  // namespace velo::core
