// rms_norm as an operator: what its tensors must look like, and how rows become slices.
//
// dgamma sums over all rows, so each slice keeps a row of partial sums and the partial rows are
// added in slice order.
#include "ops/norm/rms_norm.hpp"

#include <cstring>

#include "core/round_up.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "ops/operator/widened.hpp"
#include "velo/ops_norm.h"

namespace velo::ops {
namespace {

// gamma has the trailing shape of x, and is float32 or of x's dtype.
void require_gain(const velo_tensor& gamma, const velo_tensor& x) {
  require_rank(x, "x", 1);
  require_rank(gamma, "gamma", 1, x.ndim);
  require_shape(gamma, "gamma", gamma.ndim, x.shape + (x.ndim - gamma.ndim));
  if (!(gamma.dtype == f32)) require_dtype(gamma, "gamma", x.dtype);
}

// The shape of rstd: x with the normalized dimensions set to 1.
struct statistics_shape {
  std::int64_t sizes[max_rank];
  statistics_shape(const velo_tensor& x, int normalized) {
    for (int i = 0; i < x.ndim; ++i) sizes[i] = i < x.ndim - normalized ? x.shape[i] : 1;
  }
};

// Rows of n elements that share gamma.
struct rms_norm_problem {
  std::int64_t rows, n;
};

rms_norm_problem problem_of(const velo_tensor& x, const velo_tensor& gamma) {
  return {row_count(x, gamma.ndim), numel(gamma)};
}

void infer(const velo_rms_norm_args& a, rms_norm_problem& p, output_shapes& outputs) {
  require_gain(*a.gamma, *a.x);
  outputs.like(a.y, *a.x);
  outputs.set(a.rstd, f32, a.x->ndim, statistics_shape(*a.x, a.gamma->ndim).sizes);
  p = problem_of(*a.x, *a.gamma);
}

void infer_backward(const velo_rms_norm_backward_args& a, rms_norm_problem& p,
                    output_shapes& outputs) {
  require_gain(*a.gamma, *a.x);
  require_like(*a.dy, "dy", *a.x, "x");
  require_shape(*a.rstd, "rstd", a.x->ndim, statistics_shape(*a.x, a.gamma->ndim).sizes);
  outputs.like(a.dx, *a.x);
  outputs.like(a.dgamma, *a.gamma, f32);
  p = problem_of(*a.x, *a.gamma);
}

template <class T>
void forward(const velo_rms_norm_args& a, const rms_norm_problem& p,
             const rms_norm_kernels& kernels, core::execution& on) {
  const auto row_bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  const row_slices slices = slice_rows(p.rows, row_bytes);
  const bool bypass = bypass_cache(data<T>(a.y), p.rows, row_bytes, on);
  const float* gamma = widened(*a.gamma, on);
  float* rstd = data<float>(a.rstd);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    kernels.forward(rms_norm_slice<T>{data<const T>(a.x) + first * p.n, gamma,
                                      data<T>(a.y) + first * p.n,
                                      rstd == nullptr ? nullptr : rstd + first, slices.count(task),
                                      p.n, static_cast<float>(a.epsilon), bypass});
  });
}

// dgamma from the slices' partial rows, blocks of columns at a time.
void add_partials(const velo_rms_norm_backward_args& a, const rms_norm_problem& p,
                  const rms_norm_kernels& kernels, core::execution& on, const float* partial,
                  std::int64_t partial_rows) {
  constexpr std::int64_t block = 1024;
  on.threads(core::ceil_div(p.n, block), [&](std::int64_t task, int) {
    const std::int64_t at = task * block;
    kernels.gain({partial + at, partial_rows, p.n, data<float>(a.dgamma) + at,
                  std::min(block, p.n - at), a.accumulate != 0});
  });
}

template <class T>
void backward(const velo_rms_norm_backward_args& a, const rms_norm_problem& p,
              const rms_norm_kernels& kernels, core::execution& on) {
  const auto row_bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  // There are at most 32 partial rows, of at least 16 rows each, and at most 4 MiB of them.
  const row_slices slices =
      slice_rows_into(p.rows, std::clamp<std::int64_t>((1 << 20) / p.n, 1, 32), 16);
  const auto partial_count = static_cast<std::size_t>(slices.tasks() * p.n);
  float* partial = a.dgamma == nullptr ? nullptr : on.scratch.take<float>(partial_count);
  const bool bypass = bypass_cache(data<T>(a.dx), p.rows, row_bytes, on);
  const float* gamma = widened(*a.gamma, on);
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    float* sums = partial == nullptr ? nullptr : partial + task * p.n;
    if (sums != nullptr) std::memset(sums, 0, sizeof(float) * static_cast<std::size_t>(p.n));
    kernels.backward(rms_norm_backward_slice<T>{
        data<const T>(a.dy) + first * p.n, data<const T>(a.x) + first * p.n, gamma,
        data<const float>(a.rstd) + first, data<T>(a.dx) + first * p.n, sums, slices.count(task),
        p.n, bypass});
  });
  if (a.dgamma != nullptr) add_partials(a, p, kernels, on, partial, slices.tasks());
}

void cost_of(const velo_rms_norm_backward_args& a, const rms_norm_problem&, op_cost& cost) {
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
