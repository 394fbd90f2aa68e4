// global_norm and multi_tensor_global_norm as operators: slices, their sum in order, norm and clip
// factor.
#include "ops/optimizer/global_norm.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/round_up.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_optimizer.h"

namespace velo::ops {
namespace {

constexpr velo_dtype f64{VELO_DTYPE_FLOAT, 64, 1};
constexpr std::int64_t slice_elements_of_a_sum = 4096;
constexpr std::int64_t slices_per_task = 16;

// The tensors whose squares are summed.
struct tensor_list {
  const velo_tensor* tensors;
  std::int64_t count;
};
tensor_list list_of(const velo_global_norm_args& a) {
  return {a.x, 1};
}
tensor_list list_of(const velo_multi_tensor_global_norm_args& a) {
  return {a.x->data, a.x->count};
}

struct no_problem {};

template <class Args>
void infer(const Args& a, no_problem&, output_shapes& outputs) {
  outputs.set(a.sum_of_squares, f64, 0, nullptr);
  outputs.set(a.norm, f32, 0, nullptr);
  outputs.set(a.clip, f32, 0, nullptr);
}

row_slices slices_of(const velo_tensor& x) {
  return {numel(x), slice_elements_of_a_sum};
}

double sum_of_slice(const velo_tensor& x, std::int64_t slice, const global_norm_kernels& kernels) {
  const row_slices slices = slices_of(x);
  double sum = 0;
  with_element_type(x.dtype, [&](auto element) {
    using T = decltype(element);
    sum = kernels.sum_of_squares(
        square_slice<T>{data<const T>(&x) + slices.begin(slice), slices.count(slice)});
  });
  return sum;
}

// The slices of all tensors are numbered in order; begin[i] is the first one of tensor i.
const std::int64_t* first_slices(const tensor_list& list, core::arena& scratch) {
  auto* begin = scratch.take<std::int64_t>(static_cast<std::size_t>(list.count + 1));
  begin[0] = 0;
  for (std::int64_t i = 0; i < list.count; ++i)
    begin[i + 1] = begin[i] + slices_of(list.tensors[i]).tasks();
  return begin;
}

// Adds the squares of all tensors to `total`, in list order.
double sum(const tensor_list& list, double total, const global_norm_kernels& kernels,
           core::execution& on) {
  const std::int64_t* begin = first_slices(list, on.scratch);
  const std::int64_t count = begin[list.count];
  auto* partial = on.scratch.take<double>(static_cast<std::size_t>(count));
  on.threads(core::ceil_div(count, slices_per_task), [&](std::int64_t task, int) {
    std::int64_t s = task * slices_per_task;
    const std::int64_t last = std::min(count, s + slices_per_task);
    std::int64_t i = std::upper_bound(begin, begin + list.count, s) - begin - 1;
    for (; s < last; ++s) {
      while (begin[i + 1] <= s) ++i;
      partial[s] = sum_of_slice(list.tensors[i], s - begin[i], kernels);
    }
  });
  for (std::int64_t i = 0; i < list.count; ++i)
    total += std::accumulate(partial + begin[i], partial + begin[i + 1], 0.0);
  return total;
}

template <class Args>
void run(const Args& a, const no_problem&, const global_norm_kernels& kernels,
         core::execution& on) {
  auto* total = data<double>(a.sum_of_squares);
  *total = sum(list_of(a), a.accumulate != 0 ? *total : 0, kernels, on);
  const double norm = std::sqrt(*total);
  if (a.norm != nullptr) *data<float>(a.norm) = static_cast<float>(norm);
  if (a.clip == nullptr) return;
  const double factor = a.max_norm / (norm + 1e-6);
  *data<float>(a.clip) = static_cast<float>(factor > 1 ? 1 : factor);  // NaN stays NaN
}

template <class Args>
void cost_of(const Args& a, const no_problem&, op_cost& cost) {
  if (a.accumulate != 0) cost.bytes_read += bytes_of(a.sum_of_squares);
}

}  // namespace

extern const operator_def global_norm_operator = with_cost<cost_of<velo_global_norm_args>>(
    define<infer<velo_global_norm_args>, run<velo_global_norm_args>>(global_norm_kernel_list));
extern const operator_def multi_tensor_global_norm_operator =
    with_cost<cost_of<velo_multi_tensor_global_norm_args>>(
        define<infer<velo_multi_tensor_global_norm_args>, run<velo_multi_tensor_global_norm_args>>(
            global_norm_kernel_list));

}  // namespace velo::ops
