// softmax as an operator: how a mask broadcasts, and how rows become slices.
#include "ops/softmax/softmax.hpp"

#include <cstring>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_softmax.h"

namespace velo::ops {
namespace {

// Rows of n elements; the row of the mask that belongs to a row of x, by the sizes and the mask's
// strides of the dimensions before the last.
struct softmax_problem {
  std::int64_t rows, n;
  int dimensions;
  std::int64_t sizes[max_rank], strides[max_rank];

  std::int64_t mask_row(std::int64_t row) const {
    std::int64_t at = 0;
    for (int d = dimensions - 1; d >= 0; --d) {
      at += row % sizes[d] * strides[d];
      row /= sizes[d];
    }
    return at;
  }
};

softmax_problem problem_of(const velo_tensor& x) {
  const std::int64_t rows = row_count(x);
  return {rows, rows == 0 ? 0 : row_size(x), 0, {}, {}};
}

void require_mask(const velo_tensor& mask, const velo_tensor& x, softmax_problem& p) {
  require_rank(mask, "mask", 1, x.ndim);
  const int ahead = x.ndim - mask.ndim;
  p.dimensions = x.ndim - 1;
  std::int64_t step = 1;
  for (int d = x.ndim - 1; d >= 0; --d) {
    const std::int64_t size = d < ahead ? 1 : mask.shape[d - ahead];
    const bool last = d == x.ndim - 1;
    if (size != x.shape[d] && (last || size != 1)) {
      core::fail(VELO_ERR_SHAPE, "args.mask.shape",
                 last ? core::concat(x.shape[d], " last")
                      : core::concat(x.shape[d], " or 1 in dimension ", d - ahead),
                 shape_name(mask.ndim, mask.shape));
    }
    if (last) continue;
    p.sizes[d] = x.shape[d];
    p.strides[d] = size == 1 ? 0 : step;
    step *= size;
  }
}

void infer(const velo_softmax_args& a, softmax_problem& p, output_shapes& outputs) {
  require_rank(*a.x, "x", 1);
  outputs.like(a.y, *a.x);
  p = problem_of(*a.x);
  if (a.mask != nullptr) require_mask(*a.mask, *a.x, p);
}

void infer_backward(const velo_softmax_backward_args& a, softmax_problem& p,
                    output_shapes& outputs) {
  require_rank(*a.dy, "dy", 1);
  require_like(*a.y, "y", *a.dy, "dy");
  outputs.like(a.dx, *a.dy);
  p = problem_of(*a.dy);
}

template <class T>
void forward(const velo_softmax_args& a, const softmax_problem& p, const softmax_kernels& kernels,
             core::execution& on) {
  const auto row_bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  const row_slices slices = slice_rows(p.rows, row_bytes);
  const bool bypass = bypass_cache(data<T>(a.y), p.rows, row_bytes, on);
  auto* work = on.scratch.take<float>(static_cast<std::size_t>(p.n * on.threads.threads()));
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int thread) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t r = first; r < first + slices.count(task); ++r) {
      const auto* mask =
          a.mask == nullptr ? nullptr : data<const std::uint8_t>(a.mask) + p.mask_row(r) * p.n;
      kernels.forward(softmax_row<T>{data<const T>(a.x) + r * p.n, mask, data<T>(a.y) + r * p.n,
                                     work + thread * p.n, p.n, static_cast<float>(a.scale),
                                     bypass});
    }
  });
}

template <class T>
void backward(const velo_softmax_backward_args& a, const softmax_problem& p,
              const softmax_kernels& kernels, core::execution& on) {
  const auto row_bytes = p.n * static_cast<std::int64_t>(sizeof(T));
  const row_slices slices = slice_rows(p.rows, row_bytes);
  const bool bypass = bypass_cache(data<T>(a.dx), p.rows, row_bytes, on);
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = slices.begin(task);
    for (std::int64_t r = first; r < first + slices.count(task); ++r) {
      kernels.backward(softmax_backward_row<T>{
          data<const T>(a.dy) + r * p.n, data<const T>(a.y) + r * p.n, data<T>(a.dx) + r * p.n, p.n,
          static_cast<float>(a.scale), bypass});
    }
  });
}

}  // namespace

extern const operator_def softmax_operator =
    define<infer, by_dtype<&velo_softmax_args::x, forward<float>, forward<simd::bf16>,
                           forward<simd::f16>>>(softmax_kernel_list);
extern const operator_def softmax_backward_operator =
    define<infer_backward, by_dtype<&velo_softmax_backward_args::dy, backward<float>,
                                    backward<simd::bf16>, backward<simd::f16>>>(
        softmax_kernel_list);

}  // namespace velo::ops
