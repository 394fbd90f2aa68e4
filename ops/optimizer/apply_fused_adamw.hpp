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
// p is the float32 master when there is one, else the parameter. Parameters, gradients and moments
// float32, bfloat16 or float16, each on its own; arithmetic in float32. A slice is a run of
// elements. apply_fused_ema_adamw uses the same kernels: it may add l2 * p to g, and keeps the
// running average ema = average * ema + (1 - average) * p. Bytes: 28 a parameter in float32; 26
// with bfloat16 parameters, bfloat16 gradients and float32 master. Bound: memory.
#pragma once

#include <stdint.h>

#include "ops/operator/kernels.hpp"

namespace velo::ops {

struct adamw_factors {
  float scale;  // on the gradient; negative to ascend
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float decay, rate, root, epsilon;
  float l2 = 0;                              // times p, added to the gradient
  float average = 0, one_minus_average = 0;  // of ema
};

// The type of a tensor that is not worth a kernel for each combination.
enum class adamw_element { f32, bf16, f16 };

// The kernel knows the types of param, grad and both moments.
struct adamw_slice {
  void* param;
  float* master;  // or nullptr
  const void* grad;
  void* m;
  void* v;
  void* v_max;  // or nullptr
  adamw_element v_max_type;
  float* ema;  // or nullptr
  int64_t n;
  adamw_factors by;
};

// One function for each combination of element types: [param][grad][moments], each 0 for float32,
// 1 for bfloat16, 2 for float16.
template <class Function>
struct of_each_combination {
  struct of_each_moment {
    Function of[3];
  };
  struct of_each_grad {
    of_each_moment of[3];
  };
  of_each_grad of[3];

  // Make::function<Param, Grad, Moment> for each of them.
  template <class Make>
  static constexpr of_each_combination of_types() {
    return {{with<Make, float>(), with<Make, simd::bf16>(), with<Make, simd::f16>()}};
  }
  Function at(int param, int grad, int moment) const { return of[param].of[grad].of[moment]; }

 private:
  template <class Make, class Param>
  static constexpr of_each_grad with() {
    return {{with<Make, Param, float>(), with<Make, Param, simd::bf16>(),
             with<Make, Param, simd::f16>()}};
  }
  template <class Make, class Param, class Grad>
  static constexpr of_each_moment with() {
    return {{Make::template function<Param, Grad, float>,
             Make::template function<Param, Grad, simd::bf16>,
             Make::template function<Param, Grad, simd::f16>}};
  }
};

struct apply_fused_adamw_kernels {
  of_each_combination<void (*)(const adamw_slice&)> update;
};
extern const kernel_list apply_fused_adamw_kernel_list;

}  // namespace velo::ops
