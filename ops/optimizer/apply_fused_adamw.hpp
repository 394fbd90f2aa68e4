// AdamW in one pass: gradient scaling, decoupled decay, both moments, bias correction and the
// update, in place.
//
//   g = grad * scale                                        negated to ascend
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g^2
//   p = decay * p - rate * m / (sqrt(h) * root + epsilon)   h = v, or the largest so far (amsgrad)
//
// with decay = 1 - lr * wd, rate = lr / (1 - beta1^t) and root = 1 / sqrt(1 - beta2^t) in double,
// once a call. t and lr are attributes, or elements of tensors that are read when the update runs:
// hosts that compile a step (XLA, graphs, queues) then compile it once.
//
// p is the float32 master when there is one, else the parameter. Parameters and gradients float32
// or bfloat16, moments float32 or bfloat16; arithmetic in float32. A slice is a run of elements.
// Bytes: 28 a parameter in float32; 26 with bfloat16 parameters, bfloat16 gradients and float32
// master. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

struct adamw_factors {
  float scale;  // on the gradient; negative to ascend
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float decay, rate, root, epsilon;
};

template <class Param, class Grad, class Moment>
struct adamw_slice {
  Param* param;
  float* master;  // or nullptr
  const Grad* grad;
  Moment* m;
  Moment* v;
  Moment* v_max;  // or nullptr
  int64_t n;
  adamw_factors by;
};

// One kernel per combination of element types: bit 0 param, bit 1 grad, bit 2 moments; set means
// bfloat16. The slice is of the matching type.
struct apply_fused_adamw_kernels {
  void (*update[8])(const void* slice);
};
extern const kernel_list apply_fused_adamw_kernel_list;

}  // namespace velo::ops
