// reduce_max_abs as an operator: what is reduced, and how it becomes slices.
//
// A tensor as a whole has a partial result for each block of elements, columns one for each slice
// of rows; both are then reduced on the calling thread.
#include "ops/elementwise/reduce_max_abs.hpp"

#include <cstring>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_elementwise.h"

namespace velo::ops {
namespace {

struct max_abs_problem {
  std::int64_t rows, n;
};

void infer(const velo_reduce_max_abs_args& a, max_abs_problem& p, output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  if (a.over == VELO_REDUCED_TENSOR) {
    outputs.set(a.y, f32, 0, nullptr);
    p = {1, numel(x)};
    return;
  }
  require_rank(x, "x", 1);
  if (a.over == VELO_REDUCED_ROWS)
    outputs.set(a.y, f32, x.ndim - 1, x.shape);
  else
    outputs.set(a.y, f32, 1, x.shape + x.ndim - 1);
  p = {row_count(x), row_size(x)};
}

template <class T>
void reduce_all(const velo_reduce_max_abs_args& a, const max_abs_problem& p,
                const reduce_max_abs_kernels& kernels, core::execution& on) {
  const row_slices blocks = slice_elements(p.n);
  auto* partial = on.scratch.take<float>(static_cast<std::size_t>(blocks.tasks()));
  on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    partial[task] =
        kernels.run(max_abs_run<T>{data<const T>(a.x) + blocks.begin(task), blocks.count(task)});
  });
  *data<float>(a.y) = kernels.run(max_abs_run<float>{partial, blocks.tasks()});
}

template <class T>
void reduce_rows(const velo_reduce_max_abs_args& a, const max_abs_problem& p,
                 const reduce_max_abs_kernels& kernels, core::execution& on) {
  const row_slices slices = slice_rows(p.rows, p.n * static_cast<std::int64_t>(sizeof(T)));
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t r = first; r < first + slices.count(task); ++r)
      data<float>(a.y)[r] = kernels.run(max_abs_run<T>{data<const T>(a.x) + r * p.n, p.n});
  });
}

template <class T>
void reduce_columns(const velo_reduce_max_abs_args& a, const max_abs_problem& p,
                    const reduce_max_abs_kernels& kernels, core::execution& on) {
  const row_slices slices = slice_rows_into(p.rows, 32, 16);
  const auto bytes = sizeof(float) * static_cast<std::size_t>(p.n);
  auto* partial = on.scratch.take<float>(static_cast<std::size_t>(slices.tasks() * p.n));
  on.threads(slices.tasks(), [&](std::int64_t task, int) {
    float* largest = partial + task * p.n;
    std::memset(largest, 0, bytes);
    const std::int64_t first = slices.begin(task);
    for (std::int64_t r = first; r < first + slices.count(task); ++r)
      kernels.columns(max_abs_row<T>{data<const T>(a.x) + r * p.n, largest, p.n});
  });
  std::memset(data<float>(a.y), 0, bytes);
  for (std::int64_t task = 0; task < slices.tasks(); ++task)
    kernels.columns(max_abs_row<float>{partial + task * p.n, data<float>(a.y), p.n});
}

template <class T>
void run(const velo_reduce_max_abs_args& a, const max_abs_problem& p,
         const reduce_max_abs_kernels& kernels, core::execution& on) {
  if (a.over == VELO_REDUCED_TENSOR)
    reduce_all<T>(a, p, kernels, on);
  else if (a.over == VELO_REDUCED_ROWS)
    reduce_rows<T>(a, p, kernels, on);
  else
    reduce_columns<T>(a, p, kernels, on);
}

}  // namespace

extern const operator_def reduce_max_abs_operator =
    define<infer,
           by_dtype<&velo_reduce_max_abs_args::x, run<float>, run<simd::bf16>, run<simd::f16>>>(
        reduce_max_abs_kernel_list);

}  // namespace velo::ops
