// The instruction sets that tests of kernels loop over: those of the machine, and AMX where
// tests/amx emulates tiles in software.
#pragma once

#include "core/host/cpu.hpp"

namespace velo::testing {

inline core::isa highest_isa() {
  const core::isa highest = core::detect_isa();
#ifdef VELO_SOFT_TILES
  if (highest >= core::isa::avx512_bf16) return core::isa::amx;
#endif
  return highest;
}

// Loops run from first_isa() to below this.
inline int isa_count() {
  return static_cast<int>(highest_isa()) + 1;
}

// The first isa of a loop: `least`, 0 being scalar code; with tiles in software AMX, since
// tests/ops has tested the others.
inline int first_isa(int least = 0) {
#ifdef VELO_SOFT_TILES
  if (highest_isa() == core::isa::amx) return static_cast<int>(core::isa::amx);
#endif
  return least;
}

}  // namespace velo::testing
