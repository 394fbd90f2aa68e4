// Random draws of a gate: one for each token and expert, and one more for each token.
//
// A draw is a word of Philox4x32-10 (core/simd/philox.hpp), as dropout has it: output i % 4 of the
// block with counter (i / 4, offset) and key seed. The draw of token t for expert e of E has index
// i = t (E + 1) + e, that of the token itself e = E, where t counts from the first token of all
// ranks. So a draw does not depend on which rank has the token. Cost: a quarter of a block a draw.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/simd/philox.hpp"

namespace velo::ops {

class gate_draws {
 public:
  gate_draws(std::int64_t seed, std::int64_t offset, std::int64_t first_token, std::int64_t experts)
      : keys_(simd::philox_schedule(static_cast<std::uint64_t>(seed))),
        offset_(static_cast<std::uint64_t>(offset)),
        first_(static_cast<std::uint64_t>(first_token)),
        experts_(static_cast<std::uint64_t>(experts)) {}

  // values[e]: the logit of an expert, to which a number of Gumbel's distribution is added.
  void add_gumbel(std::int64_t token, double* values) const {
    std::uint64_t index = index_of(token, 0);
    simd::philox_words block = simd::philox(index / 4, offset_, keys_);
    for (std::uint64_t e = 0; e < experts_; ++e, ++index) {
      if (e > 0 && index % 4 == 0) block = simd::philox(index / 4, offset_, keys_);
      values[e] -= std::log(-std::log(uniform(block.of[index % 4])));
    }
  }

  // The draw of a token itself.
  std::uint32_t of_token(std::int64_t token) const {
    const std::uint64_t index = index_of(token, experts_);
    return simd::philox(index / 4, offset_, keys_).of[index % 4];
  }

 private:
  static double uniform(std::uint32_t word) {  // in (0, 1)
    return (static_cast<double>(word) + 0.5) * 0x1p-32;
  }
  std::uint64_t index_of(std::int64_t token, std::uint64_t draw) const {
    return (first_ + static_cast<std::uint64_t>(token)) * (experts_ + 1) + draw;
  }

  const simd::philox_keys keys_;
  const std::uint64_t offset_, first_, experts_;
};

}  // namespace velo::ops
