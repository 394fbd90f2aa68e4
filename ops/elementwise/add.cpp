// add as an operator: its shapes, its slices, its kernels.
#include "ops/elementwise/add.hpp"

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_elementwise.h"

namespace velo::ops {
namespace {

struct add_problem {
  std::int64_t count;
};

void infer(const velo_add_args& a, add_problem& p, output_shapes& outputs) {
  require_like(*a.b, "b", *a.a, "a");
  outputs.like(a.y, *a.a);
  p.count = numel(*a.a);
}

template <class T>
void run(const velo_add_args& a, const add_problem& p, const add_kernels& kernels,
         core::execution& on) {
  const row_slices blocks = slice_elements(p.count);
  const bool bypass =
      bypass_cache(data<T>(a.y), 1, p.count * static_cast<std::int64_t>(sizeof(T)), on);
  on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task);
    kernels.add(add_slice<T>{data<const T>(a.a) + first, data<const T>(a.b) + first,
                             data<T>(a.y) + first, blocks.count(task), bypass});
  });
}

}  // namespace

extern const operator_def add_operator =
    define<infer, by_dtype<&velo_add_args::y, run<float>, run<simd::bf16>, run<simd::f16>>>(
        add_kernel_list);

}  // namespace velo::ops
