// accumulate as an operator: its shapes, its slices, its kernels.
#include "ops/elementwise/accumulate.hpp"

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_elementwise.h"

namespace velo::ops {
namespace {

struct accumulate_problem {
  std::int64_t count;
};

void infer(const velo_accumulate_args& a, accumulate_problem& p, output_shapes& outputs) {
  outputs.like(a.y, *a.x, a.y == nullptr ? a.x->dtype : a.y->dtype);
  p.count = numel(*a.x);
}

template <class From, class To>
void run_types(const velo_accumulate_args& a, const accumulate_problem& p,
               const accumulate_from<From>& kernel, core::execution& on) {
  const row_slices blocks = slice_elements(p.count);
  on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task);
    kernel(accumulate_slice<From, To>{data<const From>(a.x) + first, data<To>(a.y) + first,
                                      blocks.count(task), static_cast<float>(a.alpha)});
  });
}

void run(const velo_accumulate_args& a, const accumulate_problem& p,
         const accumulate_kernels& kernels, core::execution& on) {
  with_element_type(a.x->dtype, [&](auto from) {
    with_element_type(a.y->dtype, [&](auto to) {
      run_types<decltype(from), decltype(to)>(a, p, kernels.of(from), on);
    });
  });
}

}  // namespace

extern const operator_def accumulate_operator = define<infer, run>(accumulate_kernel_list);

}  // namespace velo::ops
