// Numbers whose high bits are as good as random, the same in every run.
#pragma once

#include <cstdint>

namespace velo::ops {

// splitmix64 (Steele et al. 2014).
inline std::uint64_t mixed_bits(std::uint64_t n) {
  n += 0x9e3779b97f4a7c15u;
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9u;
  n = (n ^ (n >> 27)) * 0x94d049bb133111ebu;
  return n ^ (n >> 31);
}

}  // namespace velo::ops
