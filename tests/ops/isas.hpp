// The instruction sets that tests of kernels go through: what the machine offers, and AMX where
// tests/amx puts tiles in software in its place.
#pragma once

#include "core/cpu.hpp"

namespace velo::testing {

inline core::isa highest_isa() {
  const core::isa highest = core::detect_isa();
#ifdef VELO_SOFT_TILES
  if (highest >= core::isa::avx512_bf16) return core::isa::amx;
#endif
  return highest;
}

// Loops run from 0, scalar code, to below this.
inline int isa_count() {
  return static_cast<int>(highest_isa()) + 1;
}

}  // namespace velo::testing
