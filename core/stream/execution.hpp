// Resources of work while it runs: threads, scratch, the machine as the configuration lets it be
// seen, and the stream to call velo with.
//
// A context hands one out for the length of one piece of work. Work that computes has the turn and
// all threads; work that waits has the calling thread alone. Do not copy it or keep a reference
// past the work.
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
