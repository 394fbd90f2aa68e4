// layer_norm as an operator: what its tensors must look like. norm_rows.hpp makes slices of them.
#include "ops/norm/layer_norm.hpp"

#include "ops/norm/norm_rows.hpp"
#include "velo/ops_norm.h"

namespace velo::ops {
namespace {

void infer(const velo_layer_norm_args& a, norm_problem& p, output_shapes& outputs) {
  p = norm_problem_of(*a.x, a.gamma);
  if (a.beta != nullptr) {
    require_gain(*a.beta, "beta", *a.x);
    require_rank(*a.beta, "beta", p.normalized, p.normalized);
  }
  outputs.like(a.y, *a.x);
  const statistics_shape statistics(*a.x, p.normalized);
  outputs.set(a.mean, f32, a.x->ndim, statistics.sizes);
  outputs.set(a.rstd, f32, a.x->ndim, statistics.sizes);
}

void infer_backward(const velo_layer_norm_backward_args& a, norm_problem& p,
                    output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  p = norm_problem_of(x, a.gamma);
  require_like(*a.dy, "dy", x, "x");
  const statistics_shape statistics(x, p.normalized);
  require_shape(*a.mean, "mean", x.ndim, statistics.sizes);
  require_shape(*a.rstd, "rstd", x.ndim, statistics.sizes);
  outputs.like(a.dx, x);
  outputs.set(a.dgamma, f32, p.normalized, x.shape + (x.ndim - p.normalized));
  outputs.set(a.dbeta, f32, p.normalized, x.shape + (x.ndim - p.normalized));
}

template <class T>
void forward(const velo_layer_norm_args& a, const norm_problem& p,
             const layer_norm_kernels& kernels, core::execution& on) {
  const norm_gains by{widened_or(a.gamma, p.n, 1, on), widened_or(a.beta, p.n, 0, on)};
  normalize<T>(a, p, by, data<float>(a.mean), kernels, on);
}

template <class T>
void backward(const velo_layer_norm_backward_args& a, const norm_problem& p,
              const layer_norm_kernels& kernels, core::execution& on) {
  normalize_backward<T>(a, p, widened_or(a.gamma, p.n, 1, on), data<const float>(a.mean), a.dbeta,
                        kernels, on);
}

void cost_of(const velo_layer_norm_backward_args& a, const norm_problem&, op_cost& cost) {
  if (a.accumulate != 0) cost.bytes_read += bytes_of(a.dgamma) + bytes_of(a.dbeta);
}

}  // namespace

extern const operator_def layer_norm_operator =
    define<infer, by_dtype<&velo_layer_norm_args::x, forward<float>, forward<simd::bf16>,
                           forward<simd::f16>>>(layer_norm_kernel_list);
extern const operator_def layer_norm_backward_operator = with_cost<cost_of>(
    define<infer_backward, by_dtype<&velo_layer_norm_backward_args::x, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        layer_norm_kernel_list));

}  // namespace velo::ops
