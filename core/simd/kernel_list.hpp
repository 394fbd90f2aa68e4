// The kernels of one algorithm: one struct of function pointers, and a constant instance of it for
// each ISA that has kernels.
//
// CMake (velo_kernels) writes the list of all instances: the highest ISA first, the plain reference
// last. Files compiled for one ISA read this header, so it uses nothing of the standard library.
#pragma once

#include <stdint.h>

#include "core/host/cpu.hpp"
#include "velo/types.h"

namespace velo::simd {

struct kernel_entry {
  const char* name;     // "avx512", "reference"
  core::isa isa;        // the ISA that it needs
  const void* kernels;  // the algorithm's struct
  velo_device_type device = VELO_DEVICE_CPU;
  int level = 0;  // the lowest optimization level that it serves
};

// In order of preference; the last entry works on every machine.
struct kernel_list {
  const kernel_entry* entries;
  int count;
};

}  // namespace velo::simd
