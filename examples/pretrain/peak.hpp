// What this machine can do: the rate of a large packed product, measured for a moment before
// training.
//
// A product of this shape runs at 94 to 99 % of the processor's limit, so shares of it are shares
// of what can be had here, now, on these threads.
#pragma once

#include <velo/velo.hpp>

#include "safetensors.hpp"

namespace pretrain {

double peak_flops(const velo::context& context, element type);

}  // namespace pretrain
