// global_norm as an operator: slices, their sum in order, norm and clip factor, kernels.
#include "ops/optimizer/global_norm.hpp"

#include <cmath>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_optimizer.h"

namespace velo::ops {
namespace {

using simd::bf16;
using args = velo_global_norm_args;

constexpr velo_dtype f64{VELO_DTYPE_FLOAT, 64, 1};
constexpr std::int64_t slice_elements_of_a_sum = 4096;
constexpr std::int64_t slices_per_task = 16;

void infer(const args&, output_shapes& outputs) {
  outputs.set("sum_of_squares", f64, 0, nullptr);
  outputs.set("norm", f32, 0, nullptr);
  outputs.set("clip", f32, 0, nullptr);
}

template <class T>
double sum(const args& a, core::execution& on, double (*kernel)(const square_slice<T>&)) {
  const row_slices slices{numel(*a.x), slice_elements_of_a_sum};
  const std::int64_t count = slices.tasks();
  auto* partial = on.scratch.take<double>(static_cast<std::size_t>(count));
  on.threads((count + slices_per_task - 1) / slices_per_task, [&](std::int64_t task, int) {
    const std::int64_t last = std::min(count, (task + 1) * slices_per_task);
    for (std::int64_t s = task * slices_per_task; s < last; ++s) {
      partial[s] = kernel({data<const T>(a.x) + slices.begin(s), slices.count(s)});
    }
  });
  double total = 0;
  for (std::int64_t s = 0; s < count; ++s) total += partial[s];
  return total;
}

template <double (*F32)(const square_slice<float>&), double (*BF16)(const square_slice<bf16>&)>
void run(const args& a, core::execution& on) {
  auto* total = data<double>(a.sum_of_squares);
  const double squares = a.x->dtype == f32 ? sum<float>(a, on, F32) : sum<bf16>(a, on, BF16);
  *total = a.accumulate != 0 ? *total + squares : squares;
  const double norm = std::sqrt(*total);
  if (a.norm != nullptr) *data<float>(a.norm) = static_cast<float>(norm);
  if (a.clip != nullptr)
    *data<float>(a.clip) = static_cast<float>(std::min(1.0, a.max_norm / (norm + 1e-6)));
}

constexpr candidate kernels[] = {
    kernel<args, run<avx512::sum_of_squares, avx512::sum_of_squares>>("avx512", core::isa::avx512),
    kernel<args, run<avx2::sum_of_squares, avx2::sum_of_squares>>("avx2", core::isa::avx2),
    kernel<args, run<reference::sum_of_squares, reference::sum_of_squares>>("reference",
                                                                            core::isa::scalar),
};

}  // namespace

extern const operator_def global_norm_operator = define<args, infer>(kernels);

}  // namespace velo::ops
