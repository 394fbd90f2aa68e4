// Products of many rows of bf16 with a quantized weight, on the engine's kernels for bf16.
//
// bf16 holds integers of 8 bits exactly, so a block of the weight becomes bf16 without its scales.
// The engine multiplies it, and the sums of a group are scaled and added up in float32. Invariant:
// no term is rounded before it is added; an element depends on its row and its column alone.
// Scratch: 2 MB at most, and the engine's. Cost: 2 m n k FLOP at the engine's speed in bf16, and a
// pass over the sums for each group.
#pragma once

#include "ops/quant/weight_product.hpp"

namespace velo::ops {

// Returns whether this path serves the product. It serves no gradients, whose scales lie along the
// depth.
bool multiplies_as_bf16(const weight_product& p, const weight_quant_kernels& kernels);

void multiply_as_bf16(const weight_product& p, const weight_quant_kernels& kernels,
                      core::execution& on);

}  // namespace velo::ops
