// global_norm as an operator: slices, their sum in order, norm and clip factor.
#include "ops/optimizer/global_norm.hpp"

#include <cmath>

#include "core/round_up.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_optimizer.h"

namespace velo::ops {
namespace {

using args = velo_global_norm_args;

constexpr velo_dtype f64{VELO_DTYPE_FLOAT, 64, 1};
constexpr std::int64_t slice_elements_of_a_sum = 4096;
constexpr std::int64_t slices_per_task = 16;

struct global_norm_problem {
  std::int64_t count;
};

void infer(const args& a, global_norm_problem& p, output_shapes& outputs) {
  outputs.set(a.sum_of_squares, f64, 0, nullptr);
  outputs.set(a.norm, f32, 0, nullptr);
  outputs.set(a.clip, f32, 0, nullptr);
  p.count = numel(*a.x);
}

template <class T>
double sum(const args& a, const global_norm_problem& p, const global_norm_kernels& kernels,
           core::execution& on) {
  const row_slices slices{p.count, slice_elements_of_a_sum};
  const std::int64_t count = slices.tasks();
  auto* partial = on.scratch.take<double>(static_cast<std::size_t>(count));
  on.threads(core::ceil_div(count, slices_per_task), [&](std::int64_t task, int) {
    const std::int64_t last = std::min(count, (task + 1) * slices_per_task);
    for (std::int64_t s = task * slices_per_task; s < last; ++s) {
      partial[s] = kernels.sum_of_squares(
          square_slice<T>{data<const T>(a.x) + slices.begin(s), slices.count(s)});
    }
  });
  double total = 0;
  for (std::int64_t s = 0; s < count; ++s) total += partial[s];
  return total;
}

void run(const args& a, const global_norm_problem& p, const global_norm_kernels& kernels,
         core::execution& on) {
  auto* total = data<double>(a.sum_of_squares);
  double squares = 0;
  with_element_type(a.x->dtype,
                    [&](auto element) { squares = sum<decltype(element)>(a, p, kernels, on); });
  *total = a.accumulate != 0 ? *total + squares : squares;
  const double norm = std::sqrt(*total);
  if (a.norm != nullptr) *data<float>(a.norm) = static_cast<float>(norm);
  if (a.clip == nullptr) return;
  const double factor = a.max_norm / (norm + 1e-6);
  *data<float>(a.clip) = static_cast<float>(factor > 1 ? 1 : factor);  // NaN stays NaN
}

void cost_of(const args& a, const global_norm_problem&, op_cost& cost) {
  if (a.accumulate != 0) cost.bytes_read += bytes_of(a.sum_of_squares);
}

}  // namespace

extern const operator_def global_norm_operator =
    with_cost<cost_of>(define<infer, run>(global_norm_kernel_list));

}  // namespace velo::ops
