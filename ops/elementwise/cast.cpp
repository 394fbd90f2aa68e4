// cast as an operator: its shapes, its slices, its kernels. Equal element types are a copy.
#include "ops/elementwise/cast.hpp"

#include <cstring>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_elementwise.h"

namespace velo::ops {
namespace {

using simd::bf16;

void infer(const velo_cast_args& a, output_shapes& outputs) {
  outputs.like("y", *a.x, a.dtype == VELO_ELEMENT_FLOAT32 ? velo::ops::f32 : velo::ops::bf16);
}

template <class From, class To>
void slices(const velo_cast_args& a, core::execution& on,
            void (*kernel)(const cast_slice<From, To>&)) {
  const row_slices blocks = slice_elements(numel(*a.y));
  const bool bypass =
      bypass_cache(data<To>(a.y), 1, blocks.rows * static_cast<std::int64_t>(sizeof(To)), on);
  on.threads(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task);
    kernel({data<const From>(a.x) + first, data<To>(a.y) + first, blocks.count(task), bypass});
  });
}

void copy(const velo_cast_args& a, core::execution& on) {
  const row_slices blocks = slice_elements(numel(*a.y));
  const std::int64_t bytes = element_bytes(a.x->dtype);
  on.threads(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task) * bytes;
    std::memcpy(data<char>(a.y) + first, data<const char>(a.x) + first,
                static_cast<std::size_t>(blocks.count(task) * bytes));
  });
}

template <void (*Narrow)(const cast_slice<float, bf16>&),
          void (*Widen)(const cast_slice<bf16, float>&)>
void run(const velo_cast_args& a, core::execution& on) {
  if (a.x->dtype == a.y->dtype) return copy(a, on);
  a.x->dtype == f32 ? slices<float, bf16>(a, on, Narrow) : slices<bf16, float>(a, on, Widen);
}

constexpr candidate kernels[] = {
    kernel<velo_cast_args, run<avx512::cast, avx512::cast>>("avx512", core::isa::avx512),
    kernel<velo_cast_args, run<avx2::cast, avx2::cast>>("avx2", core::isa::avx2),
    kernel<velo_cast_args, run<reference::cast, reference::cast>>("reference", core::isa::scalar),
};

}  // namespace

extern const operator_def cast_operator = define<velo_cast_args, infer>(kernels);

}  // namespace velo::ops
