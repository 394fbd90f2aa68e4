// dropout and its gradient as operators: their shapes, their slices, their kernels.
#include "ops/elementwise/dropout.hpp"

#include "ops/operator/definition.hpp"
#include "ops/operator/dropout_part.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_elementwise.h"

namespace velo::ops {
namespace {

struct dropout_problem {
  std::int64_t count;
};

void infer(const velo_dropout_args& a, dropout_problem& p, output_shapes& outputs) {
  outputs.like(a.y, *a.x);
  outputs.like(a.mask, *a.x, u8);
  check_dropout_part(a.dropout_origin, a.dropout_extents, *a.x);
  p.count = numel(*a.x);
}

void infer_backward(const velo_dropout_backward_args& a, dropout_problem& p,
                    output_shapes& outputs) {
  outputs.like(a.dx, *a.dy);
  check_dropout_part(a.dropout_origin, a.dropout_extents, *a.dy);
  p.count = numel(*a.dy);
}

template <class T, class Args>
void multiply(const Args& a, const velo_tensor* x, const velo_tensor* y, const velo_tensor* mask,
              const dropout_kernels& kernels, core::execution& on) {
  const std::int64_t count = numel(*x);
  if (count == 0) return;
  const dropout_indices indices(x->ndim, x->shape, a.dropout_origin, a.dropout_extents);
  const row_slices blocks = slice_elements(count);
  const simd::dropout_rule rule = simd::dropout_of(a.p, static_cast<std::uint64_t>(a.seed),
                                                   static_cast<std::uint64_t>(a.offset));
  const bool bypass = bypass_cache(data<T>(y), count / indices.run(),
                                   indices.run() * static_cast<std::int64_t>(sizeof(T)), on);
  auto* kept = data<std::uint8_t>(mask);
  on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    indices.each_run(blocks.begin(task), blocks.count(task),
                     [&](std::int64_t first, std::int64_t run, std::uint64_t index) {
                       kernels.drop(dropout_slice<T>{data<const T>(x) + first, data<T>(y) + first,
                                                     kept == nullptr ? nullptr : kept + first,
                                                     &rule, index, run, bypass});
                     });
  });
}

template <class T>
void run(const velo_dropout_args& a, const dropout_problem&, const dropout_kernels& kernels,
         core::execution& on) {
  multiply<T>(a, a.x, a.y, a.mask, kernels, on);
}

template <class T>
void run_backward(const velo_dropout_backward_args& a, const dropout_problem&,
                  const dropout_kernels& kernels, core::execution& on) {
  multiply<T>(a, a.dy, a.dx, nullptr, kernels, on);
}

}  // namespace

extern const operator_def dropout_operator =
    define<infer, by_dtype<&velo_dropout_args::x, run<float>, run<simd::bf16>, run<simd::f16>>>(
        dropout_kernel_list);
extern const operator_def dropout_backward_operator =
    define<infer_backward, by_dtype<&velo_dropout_backward_args::dy, run_backward<float>,
                                    run_backward<simd::bf16>, run_backward<simd::f16>>>(
        dropout_kernel_list);

}  // namespace velo::ops
