// cast as an operator: its shapes, its slices, its kernels. Equal element types are a copy.
#include "ops/elementwise/cast.hpp"

#include <cstring>
#include <type_traits>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_elementwise.h"

namespace velo::ops {
namespace {

struct cast_problem {
  std::int64_t count;
};

velo_dtype dtype_of(std::int64_t element) {
  return element == VELO_ELEMENT_FLOAT32 ? f32 : element == VELO_ELEMENT_BFLOAT16 ? bf16 : f16;
}

void infer(const velo_cast_args& a, cast_problem& p, output_shapes& outputs) {
  outputs.like(a.y, *a.x, dtype_of(a.dtype));
  p.count = numel(*a.x);
}

void copy(const velo_cast_args& a, const cast_problem& p, core::execution& on) {
  const row_slices blocks = slice_elements(p.count);
  const std::int64_t bytes = element_bytes(a.x->dtype);
  on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task) * bytes;
    std::memcpy(data<char>(a.y) + first, data<const char>(a.x) + first,
                static_cast<std::size_t>(blocks.count(task) * bytes));
  });
}

template <class From, class To>
void convert(const velo_cast_args& a, const cast_problem& p, core::execution& on,
             cast_kernel<From, To> kernel) {
  const row_slices blocks = slice_elements(p.count);
  const bool bypass =
      bypass_cache(data<To>(a.y), 1, p.count * static_cast<std::int64_t>(sizeof(To)), on);
  on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task);
    kernel({data<const From>(a.x) + first, data<To>(a.y) + first, blocks.count(task), bypass});
  });
}

template <class From, class To>
void run_types(const velo_cast_args& a, const cast_problem& p, const cast_kernels& kernels,
               core::execution& on) {
  if constexpr (std::is_same_v<From, To>) {
    copy(a, p, on);
  } else {
    convert(a, p, on, kernels.of(From(), To()));
  }
}

void run(const velo_cast_args& a, const cast_problem& p, const cast_kernels& kernels,
         core::execution& on) {
  with_element_type(a.x->dtype, [&](auto from) {
    with_element_type(a.y->dtype,
                      [&](auto to) { run_types<decltype(from), decltype(to)>(a, p, kernels, on); });
  });
}

}  // namespace

extern const operator_def cast_operator = define<infer, run>(cast_kernel_list);

}  // namespace velo::ops
