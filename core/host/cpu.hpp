// The processor's features and the part of it that velo may use: instruction set, cache sizes,
// usable threads.
//
// Instruction sets are ordered: each includes all below it. core/simd/isas.cmake lists them, and
// core/simd/detect.cpp detects them; the configuration may only lower the result. Not hot.
#pragma once

#include <cstdint>

namespace velo::core {

enum class isa : int {
#include "core/simd/isa_enumerators.inc"
};

isa detect_isa();                            // the highest ISA that this machine and kernel allow
const char* isa_name(isa which);             // "avx512_bf16"
bool parse_isa(const char* name, isa& out);  // false when the name is unknown

enum class vendor : int { intel, amd, other };
vendor detect_vendor();  // the processor's maker, for choices that feature bits do not decide

struct cache_sizes {
  std::int64_t l1d, l2,
      l3;  // in bytes; l3 is the part that one machine may reasonably use (at most 32 MiB)
};
cache_sizes detect_caches();

int usable_threads();  // min(affinity mask, cgroup quota rounded up), at least 1

}  // namespace velo::core
