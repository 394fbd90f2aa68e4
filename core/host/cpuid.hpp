// CPUID: one leaf at a time, and its bits. Not hot.
#pragma once

#include <cpuid.h>

namespace velo::core {

struct registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

// Returns zeros if the processor lacks the leaf.
inline registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

constexpr bool bit(unsigned word, int index) {
  return ((word >> index) & 1u) != 0;
}

}  // namespace velo::core
