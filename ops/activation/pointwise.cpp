// The activations without a gate as operators: gelu, fast_gelu, silu and relu differ in their
// function alone.
#include "ops/activation/pointwise.hpp"

#include "ops/activation/function_of.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"

namespace velo::ops {
namespace {

struct pointwise_problem {
  std::int64_t count;
  activation_function function;
};

template <class Args>
void infer(const Args& a, pointwise_problem& p, output_shapes& outputs) {
  outputs.like(a.y, *a.x);
  p = {numel(*a.x), function_of(a)};
}

template <class Args>
void infer_backward(const Args& a, pointwise_problem& p, output_shapes& outputs) {
  require_like(*a.dy, "dy", *a.x, "x");
  outputs.like(a.dx, *a.x);
  p = {numel(*a.x), function_of(a)};
}

// Calls part(first element, elements, bypass) for each slice.
template <class T, class Part>
void for_slices(const velo_tensor* output, const pointwise_problem& p, core::execution& on,
                Part&& part) {
  const row_slices blocks = slice_elements(p.count);
  const bool bypass =
      bypass_cache(data<T>(output), 1, p.count * static_cast<std::int64_t>(sizeof(T)), on);
  on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    part(blocks.begin(task), blocks.count(task), bypass);
  });
}

template <class Args>
void run(const Args& a, const pointwise_problem& p, const pointwise_kernels& kernels,
         core::execution& on) {
  with_element_type(a.x->dtype, [&](auto element) {
    using T = decltype(element);
    for_slices<T>(a.y, p, on, [&](std::int64_t at, std::int64_t n, bool bypass) {
      kernels.forward[p.function](
          pointwise_slice<T>{data<const T>(a.x) + at, data<T>(a.y) + at, n, bypass});
    });
  });
}

template <class Args>
void run_backward(const Args& a, const pointwise_problem& p, const pointwise_kernels& kernels,
                  core::execution& on) {
  with_element_type(a.x->dtype, [&](auto element) {
    using T = decltype(element);
    for_slices<T>(a.dx, p, on, [&](std::int64_t at, std::int64_t n, bool bypass) {
      kernels.backward[p.function](pointwise_backward_slice<T>{
          data<const T>(a.dy) + at, data<const T>(a.x) + at, data<T>(a.dx) + at, n, bypass});
    });
  });
}

template <class Args>
constexpr operator_def forward_operator() {
  return define<infer<Args>, run<Args>>(pointwise_kernel_list);
}
template <class Args>
constexpr operator_def backward_operator() {
  return define<infer_backward<Args>, run_backward<Args>>(pointwise_kernel_list);
}

}  // namespace

extern const operator_def gelu_operator = forward_operator<velo_gelu_args>();
extern const operator_def gelu_backward_operator = backward_operator<velo_gelu_backward_args>();
extern const operator_def fast_gelu_operator = forward_operator<velo_fast_gelu_args>();
extern const operator_def fast_gelu_backward_operator =
    backward_operator<velo_fast_gelu_backward_args>();
extern const operator_def silu_operator = forward_operator<velo_silu_args>();
extern const operator_def silu_backward_operator = backward_operator<velo_silu_backward_args>();
extern const operator_def relu_operator = forward_operator<velo_relu_args>();
extern const operator_def relu_backward_operator = backward_operator<velo_relu_backward_args>();

}  // namespace velo::ops
