// Lengths of sequences that lie one after the other: their checks and sums.
#pragma once

#include <cstdint>

#include "ops/operator/tensor.hpp"
#include "velo/introspect.h"

namespace velo::ops {

// The sum of the lengths; each must be in [0, most]. Throws ARGUMENT naming args.seq_len.
std::int64_t total_length(const velo_ints& lengths, std::int64_t most);

// heads times the sum of the squared lengths, the elements of all scores. Throws ARGUMENT where a
// length is negative, SHAPE where there would be 2^57 of them.
std::int64_t total_scores(const velo_ints& lengths, std::int64_t most, std::int64_t heads);

void require_count(const velo_ints& lengths, std::int64_t count);  // as many as a tensor has

}  // namespace velo::ops
