// Layer normalization and its gradient, over the slices and loops of rms_norm (norm.hpp).
//
//   y      = (x - mean) * rstd * gamma + beta,  rstd = 1 / sqrt(mean((x - mean)^2) + epsilon)
//   g      = dy * gamma,  h = (x - mean) * rstd
//   dx     = rstd * (g - mean(g) - h * mean(g * h))
//   dgamma = sum over rows of dy * h,  dbeta = sum over rows of dy
//
// x, y, dy, dx: float32, bfloat16 or float16, [.., n] compact; gamma and beta: float32 or the dtype
// of x, either may be left out; arithmetic in float32. Bytes: forward one read and one write of x,
// backward two reads and one write. Bound: memory in DRAM; in cache the sums, two passes over a row
// forward.
#pragma once

#include "ops/norm/norm.hpp"

namespace velo::ops {

using layer_norm_kernels = norm_kernels;
extern const kernel_list layer_norm_kernel_list;

namespace reference {
extern const layer_norm_kernels layer_norm;  // also for rows whose squares exceed float32
}

}  // namespace velo::ops
