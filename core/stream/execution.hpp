// Resources of work while it runs: threads, scratch, the machine as the configuration lets it be
// seen, and the stream to call velo with.
//
// A context hands one out for the length of one piece of work: under its turn lock with all its
// threads, or, to work that waits, without the turn and with the calling thread alone. Copying it
// is not meant; keeping a reference past the work is an error.
#pragma once

#include "core/host/arena.hpp"
#include "core/host/cpu.hpp"
#include "core/stream/parallel.hpp"

namespace velo::core {

class context;
class stream;

struct execution {
  core::context& context;
  core::stream& stream;  // the one the work was submitted to
  const parallel& threads;
  arena& scratch;
  core::isa isa;     // highest instruction set kernels may use
  int optimization;  // 0 reference, 1 fused, 2 everything
  cache_sizes caches;
};

}  // namespace velo::core
