// The gated activations as operators: the split dimension becomes rows of gate and up, and rows
// become slices. swiglu, geglu and reglu differ in their function alone.
#include "ops/activation/gated.hpp"

#include "ops/activation/function_of.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_activation.h"

namespace velo::ops {
namespace {

using core::text;

// x seen from the split dimension: `rows` rows of 2 * half elements, gate first.
struct gated_problem {
  std::int64_t rows;
  std::int64_t half;
  activation_function function;
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

gated_problem problem_of(const velo_tensor& x, int split, activation_function function) {
  return {product(x.shape, split), product(x.shape + split, x.ndim - split) / 2, function};
}

struct half_shape {
  std::int64_t sizes[max_rank];
  half_shape(const velo_tensor& x, int split) {
    for (int i = 0; i < x.ndim; ++i) sizes[i] = i == split ? x.shape[i] / 2 : x.shape[i];
  }
};

template <class Args>
void infer(const Args& a, gated_problem& p, output_shapes& outputs) {
  const int split = split_of(*a.x, a.dim);
  outputs.set(a.y, a.x->dtype, a.x->ndim, half_shape(*a.x, split).sizes);
  p = problem_of(*a.x, split, function_of(a));
}

template <class Args>
void infer_backward(const Args& a, gated_problem& p, output_shapes& outputs) {
  const int split = split_of(*a.x, a.dim);
  require_shape(*a.dy, "dy", a.x->ndim, half_shape(*a.x, split).sizes);
  require_dtype(*a.dy, "dy", a.x->dtype);
  outputs.like(a.dx, *a.x);
  p = problem_of(*a.x, split, function_of(a));
}

// Cuts the rows * half elements of y into blocks and calls part(element of x, element of y, n) for
// each block's part of a row.
template <class Part>
void for_parts(const gated_problem& p, core::execution& on, Part&& part) {
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

template <class Args>
void run(const Args& a, const gated_problem& p, const gated_kernels& kernels, core::execution& on) {
  with_element_type(a.x->dtype, [&](auto element) {
    using T = decltype(element);
    const auto row_bytes = p.half * static_cast<std::int64_t>(sizeof(T));
    const bool bypass = bypass_cache(data<T>(a.y), p.rows, row_bytes, on);
    for_parts(p, on, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
      const T* gate = data<const T>(a.x) + in;
      kernels.forward[p.function](
          gated_slice<T>{gate, gate + p.half, data<T>(a.y) + out, n, bypass});
    });
  });
}

template <class Args>
void run_backward(const Args& a, const gated_problem& p, const gated_kernels& kernels,
                  core::execution& on) {
  with_element_type(a.x->dtype, [&](auto element) {
    using T = decltype(element);
    const auto row_bytes = p.half * static_cast<std::int64_t>(sizeof(T));
    const bool bypass = bypass_cache(data<T>(a.dx), p.rows, row_bytes, on);
    for_parts(p, on, [&](std::int64_t in, std::int64_t out, std::int64_t n) {
      const T* gate = data<const T>(a.x) + in;
      T* dgate = data<T>(a.dx) + in;
      kernels.backward[p.function](gated_backward_slice<T>{
          data<const T>(a.dy) + out, gate, gate + p.half, dgate, dgate + p.half, n, bypass});
    });
  });
}

template <class Args>
constexpr operator_def forward_operator() {
  return define<infer<Args>, run<Args>>(gated_kernel_list);
}
template <class Args>
constexpr operator_def backward_operator() {
  return define<infer_backward<Args>, run_backward<Args>>(gated_kernel_list);
}

}  // namespace

extern const operator_def swiglu_operator = forward_operator<velo_swiglu_args>();
extern const operator_def swiglu_backward_operator = backward_operator<velo_swiglu_backward_args>();
extern const operator_def geglu_operator = forward_operator<velo_geglu_args>();
extern const operator_def geglu_backward_operator = backward_operator<velo_geglu_backward_args>();
extern const operator_def reglu_operator = forward_operator<velo_reglu_args>();
extern const operator_def reglu_backward_operator = backward_operator<velo_reglu_backward_args>();

}  // namespace velo::ops
