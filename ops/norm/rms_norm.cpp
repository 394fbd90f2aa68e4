// rms_norm as an operator: what its tensors must look like. norm_rows.hpp makes slices of them.
#include "ops/norm/rms_norm.hpp"

#include "ops/norm/norm_rows.hpp"
#include "velo/ops_norm.h"

namespace velo::ops {
namespace {

void infer(const velo_rms_norm_args& a, norm_problem& p, output_shapes& outputs) {
  p = norm_problem_of(*a.x, a.gamma);
  outputs.like(a.y, *a.x);
  outputs.set(a.rstd, f32, a.x->ndim, statistics_shape(*a.x, p.normalized).sizes);
}

void infer_backward(const velo_rms_norm_backward_args& a, norm_problem& p, output_shapes& outputs) {
  p = norm_problem_of(*a.x, a.gamma);
  require_like(*a.dy, "dy", *a.x, "x");
  require_shape(*a.rstd, "rstd", a.x->ndim, statistics_shape(*a.x, p.normalized).sizes);
  outputs.like(a.dx, *a.x);
  outputs.like(a.dgamma, *a.gamma, f32);
}

template <class T>
void forward(const velo_rms_norm_args& a, const norm_problem& p, const rms_norm_kernels& kernels,
             core::execution& on) {
  normalize<T>(a, p, {widened(*a.gamma, on), nullptr}, nullptr, kernels, on);
}

template <class T>
void backward(const velo_rms_norm_backward_args& a, const norm_problem& p,
              const rms_norm_kernels& kernels, core::execution& on) {
  normalize_backward<T>(a, p, widened(*a.gamma, on), nullptr, nullptr, kernels, on);
}

void cost_of(const velo_rms_norm_backward_args& a, const norm_problem&, op_cost& cost) {
  if (a.accumulate != 0) cost.bytes_read += bytes_of(a.dgamma);
}

}  // namespace

extern const operator_def rms_norm_operator =
    define<infer, by_dtype<&velo_rms_norm_args::x, forward<float>, forward<simd::bf16>,
                           forward<simd::f16>>>(rms_norm_kernel_list);
extern const operator_def rms_norm_backward_operator = with_cost<cost_of>(
    define<infer_backward, by_dtype<&velo_rms_norm_backward_args::x, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        rms_norm_kernel_list));

}  // namespace velo::ops
