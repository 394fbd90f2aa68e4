// The instruction sets that tests of kernels loop over: those of the machine, and AMX where
// tests/amx emulates tiles in software.
#pragma once

#include <vector>

#include "core/host/cpu.hpp"

namespace velo::testing {

inline core::isa highest_isa() {
  const core::isa highest = core::detect_isa();
#ifdef VELO_SOFT_TILES
  if (highest >= core::isa::avx512_bf16) return core::isa::amx;
#endif
  return highest;
}

inline int isa_count() {
  return static_cast<int>(highest_isa()) + 1;
}

// The first isa that is tested: `least`, 0 being scalar code; with tiles in software AMX, since
// tests/ops has tested the others.
inline int first_isa(int least = 0) {
#ifdef VELO_SOFT_TILES
  if (highest_isa() == core::isa::amx) return static_cast<int>(core::isa::amx);
#endif
  return least;
}

// The isas of a loop over kernels.
inline std::vector<core::isa> tested_isas(int least = 0) {
  std::vector<core::isa> all;
  for (int number = first_isa(least); number < isa_count(); ++number)
    all.push_back(static_cast<core::isa>(number));
  return all;
}

}  // namespace velo::testing
