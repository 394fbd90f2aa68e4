// Root-mean-square normalization and its gradient: the operator to read first, whose shape all
// others repeat. norm.hpp has the slices, which layer_norm shares.
//
//   y      = x * rstd * gamma,  rstd = 1 / sqrt(mean(x^2) + epsilon)   over rows of n elements
//   dx     = rstd * (dy * gamma - x * rstd^2 * mean(dy * gamma * x))
//   dgamma = sum over rows of dy * x * rstd
//
// x, y, dy, dx: float32, bfloat16 or float16, [.., n] compact; gamma: float32 or the dtype of x;
// arithmetic in float32. A slice is a run of whole rows; a kernel treats one slice, and slices do
// not depend on the number of threads. Bytes: forward one read and one write of x, backward two
// reads and one write. Bound: memory, from rows of 1 KiB up.
#pragma once

#include "ops/norm/norm.hpp"

namespace velo::ops {

using rms_norm_kernels = norm_kernels;
extern const kernel_list rms_norm_kernel_list;

namespace reference {
extern const rms_norm_kernels rms_norm;  // also for rows whose squares exceed float32
}

}  // namespace velo::ops
