// Random numbers by index: the k-th value of a stream is a function of seed, purpose and k, and of
// nothing else.
//
// There is no state to save: a resumed run draws what an uninterrupted one would have drawn.
#pragma once

#include <cmath>
#include <cstdint>

namespace decoder {

enum class purpose : std::uint64_t { weights = 1, windows = 2, sampling = 3, phase = 4 };

// The finalizer of splitmix64: every input bit reaches every output bit.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class random_stream {
 public:
  constexpr random_stream(std::int64_t seed, purpose what, std::uint64_t part = 0)
      : key_(mixed(mixed(static_cast<std::uint64_t>(seed) + 0x9e3779b97f4a7c15u) ^
                   mixed(static_cast<std::uint64_t>(what) << 56 ^ part))) {}

  constexpr std::uint64_t bits(std::uint64_t k) const {
    return mixed(key_ + (k + 1) * 0x9e3779b97f4a7c15u);
  }
  constexpr double uniform(std::uint64_t k) const {  // [0, 1)
    return static_cast<double>(bits(k) >> 11) * 0x1p-53;
  }
  constexpr std::uint64_t below(std::uint64_t bound, std::uint64_t k) const {  // bound < 2^53
    return static_cast<std::uint64_t>(uniform(k) * static_cast<double>(bound));
  }
  double normal(std::uint64_t k) const {  // Box-Muller, one value of each pair
    constexpr double two_pi = 6.283185307179586;
    return std::sqrt(-2 * std::log1p(-uniform(2 * k))) * std::cos(two_pi * uniform(2 * k + 1));
  }

 private:
  std::uint64_t key_;
};

}  // namespace decoder
