// Products of float32 so small that cutting and packing would cost as much as multiplying. The
// calling thread hands both operands to the micro-kernel in place.
//
// Invariant: an element is the same chain of multiply-adds as in the engine's loops, hence the same
// bits. No scratch, no parallel region. Cost: 2 m n k FLOP, at about 80 % of the peak for 64^3.
#pragma once

#include "ops/gemm/gemm.hpp"
#include "ops/gemm/kernel/gemm_kernels.hpp"

namespace velo::ops {

bool is_small(const gemm_problem& problem);
void multiply_small(const gemm_problem& problem, const gemm_kernels& kernels);

}  // namespace velo::ops
