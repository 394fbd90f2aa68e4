// add as an operator: its shapes, its slices, its kernels.
#include "ops/elementwise/add.hpp"

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_elementwise.h"

namespace velo::ops {
namespace {

using simd::bf16;

void infer(const velo_add_args& a, output_shapes& outputs) {
  require_like(*a.b, "b", *a.a, "a");
  outputs.like("y", *a.a);
}

template <class T>
void slices(const velo_add_args& a, core::execution& on, void (*kernel)(const add_slice<T>&)) {
  const row_slices blocks = slice_elements(numel(*a.y));
  const bool bypass =
      bypass_cache(data<T>(a.y), 1, blocks.rows * static_cast<std::int64_t>(sizeof(T)), on);
  on.threads(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task);
    kernel({data<const T>(a.a) + first, data<const T>(a.b) + first, data<T>(a.y) + first,
            blocks.count(task), bypass});
  });
}

template <void (*F32)(const add_slice<float>&), void (*BF16)(const add_slice<bf16>&)>
void run(const velo_add_args& a, core::execution& on) {
  a.y->dtype == f32 ? slices<float>(a, on, F32) : slices<bf16>(a, on, BF16);
}

constexpr candidate kernels[] = {
    kernel<velo_add_args, run<avx512::add, avx512::add>>("avx512", core::isa::avx512),
    kernel<velo_add_args, run<avx2::add, avx2::add>>("avx2", core::isa::avx2),
    kernel<velo_add_args, run<reference::add, reference::add>>("reference", core::isa::scalar),
};

}  // namespace

extern const operator_def add_operator = define<velo_add_args, infer>(kernels);

}  // namespace velo::ops
