// The resources of work while it runs: threads, scratch memory, the machine's features as the
// configuration allows them, and the stream for its own calls of velo.
//
// A context provides one for the duration of one piece of work. Work that computes holds the
// context's turn and all threads; work that waits has only the calling thread. Do not copy it or
// keep a reference to it after the work.
#pragma once

#include "core/host/arena.hpp"
#include "core/host/cpu.hpp"
#include "core/stream/parallel.hpp"

namespace velo::core {

class context;
class stream;

struct execution {
  core::context& context;
  core::stream& stream;  // the stream to which the work was submitted
  const parallel& threads;
  arena& scratch;
  core::isa isa;     // highest instruction set kernels may use
  int optimization;  // 0 reference, 1 fused, 2 everything
  cache_sizes caches;
};

}  // namespace velo::core
