// swiglu as an operator: the split dimension becomes rows of gate and up, and rows become slices.
#include "ops/activation/swiglu.hpp"

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_activation.h"

namespace velo::ops {
namespace {

using core::text;

// x seen from the split dimension: `rows` rows of 2 * half elements, gate first.
struct swiglu_problem {
  std::int64_t rows;
  std::int64_t half;
};

// The dimension that is split.
int split_of(const velo_tensor& x, std::int64_t wanted) {
  require_rank(x, "x", 1);
  const auto dim = static_cast<int>(wanted < 0 ? wanted + x.ndim : wanted);
  if (dim < 0 || dim >= x.ndim) {
    core::fail(VELO_ERR_ARGUMENT, "args.dim", text("a dimension in [%d, %d]", -x.ndim, x.ndim - 1),
               core::number(wanted));
  }
  if (x.shape[dim] % 2 != 0) {
    core::fail(VELO_ERR_SHAPE, "args.x.shape", text("an even size in dimension %d", dim),
               shape_name(x.ndim, x.shape));
  }
  return dim;
}

swiglu_problem problem_of(const velo_tensor& x, int split) {
  return {product(x.shape, split), product(x.shape + split, x.ndim - split) / 2};
}

struct half_shape {
  std::int64_t sizes[max_rank];
  half_shape(const velo_tensor& x, int split) {
    for (int i = 0; i < x.ndim; ++i) sizes[i] = i == split ? x.shape[i] / 2 : x.shape[i];
  }
};

void infer(const velo_swiglu_args& a, swiglu_problem& p, output_shapes& outputs) {
  const int split = split_of(*a.x, a.dim);
  outputs.set(a.y, a.x->dtype, a.x->ndim, half_shape(*a.x, split).sizes);
  p = problem_of(*a.x, split);
}

void infer_backward(const velo_swiglu_backward_args& a, swiglu_problem& p, output_shapes& outputs) {
  const int split = split_of(*a.x, a.dim);
  require_shape(*a.dy, "dy", a.x->ndim, half_shape(*a.x, split).sizes);
  require_dtype(*a.dy, "dy", a.x->dtype);
  outputs.like(a.dx, *a.x);
  p = problem_of(*a.x, split);
}

// Cuts the rows * half elements of y into blocks and calls part(element of x, element of y, n) for
// each block's part of a row.
template <class Part>
void for_parts(const swiglu_problem& p, core::execution& on, Part&& part) {
  const row_slices blocks = slice_elements(p.rows * p.half);
  on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    std::int64_t at = blocks.begin(task);
    const std::int64_t end = at + blocks.count(task);
    while (at < end) {
      const std::int64_t row = at / p.half;
      const std::int64_t n = std::min(end, (row + 1) * p.half) - at;
      part(at + row * p.half, at, n);
      at += n;
    }
  });
}

template <class T>
void run(const velo_swiglu_args& a, const swiglu_problem& p, const swiglu_kernels& kernels,
         core::execution& on) {
  const auto row_bytes = p.half * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = bypass_cache(data<T>(a.y), p.rows, row_bytes, on);
  for_parts(p, on, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
    const T* gate = data<const T>(a.x) + in;
    kernels.forward(swiglu_slice<T>{gate, gate + p.half, data<T>(a.y) + out, n, bypass});
  });
}

template <class T>
void run_backward(const velo_swiglu_backward_args& a, const swiglu_problem& p,
                  const swiglu_kernels& kernels, core::execution& on) {
  const auto row_bytes = p.half * static_cast<std::int64_t>(sizeof(T));
  const bool bypass = bypass_cache(data<T>(a.dx), p.rows, row_bytes, on);
  for_parts(p, on, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
    const T* gate = data<const T>(a.x) + in;
    T* dgate = data<T>(a.dx) + in;
    kernels.backward(swiglu_backward_slice<T>{data<const T>(a.dy) + out, gate, gate + p.half, dgate,
                                              dgate + p.half, n, bypass});
  });
}

}  // namespace

extern const operator_def swiglu_operator =
    define<infer, by_dtype<&velo_swiglu_args::x, run<float>, run<simd::bf16>, run<simd::f16>>>(
        swiglu_kernel_list);
extern const operator_def swiglu_backward_operator =
    define<infer_backward, by_dtype<&velo_swiglu_backward_args::x, run_backward<float>,
                                    run_backward<simd::bf16>, run_backward<simd::f16>>>(
        swiglu_kernel_list);

}  // namespace velo::ops
