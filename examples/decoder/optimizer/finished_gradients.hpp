// The gradients of a step, finished: sums and averages over all ranks that have parts of them, and
// the ranges whose squares each rank adds to their norm.
#pragma once

#include "examples/decoder/parallel/data_parallel.hpp"
#include "examples/decoder/parallel/model_parallel.hpp"
#include "examples/decoder/weights/weights.hpp"

namespace decoder {

// Follows the last backward pass of a step. `shared`: with other ranks that have these weights, or
// nullptr.
void finish_gradients(const velo::stream_ref& stream, const model_parallel& parallel,
                      const weights& all, const data_parallel* shared);

// The ranges of all ranks together have each parameter once.
std::vector<range> counted_ranges(const weights& all, const data_parallel* shared);

}  // namespace decoder
