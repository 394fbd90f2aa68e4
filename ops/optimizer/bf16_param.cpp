// bf16_param_split and bf16_param_merge as operators: which tensors go together, their slices.
#include "ops/optimizer/bf16_param.hpp"

#include <type_traits>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "velo/ops_optimizer.h"

namespace velo::ops {
namespace {

struct bf16_param_problem {
  std::int64_t count;
};

// The shape of the residuals: two bytes an element.
struct residual_shape {
  int rank;
  std::int64_t sizes[max_rank];
  explicit residual_shape(const velo_tensor& words) : rank(words.ndim + 1) {
    for (int i = 0; i < words.ndim; ++i) sizes[i] = words.shape[i];
    sizes[words.ndim] = 2;
  }
};

template <class Args>
void require_rounding(const Args& a, const velo_tensor& words, const char* words_field) {
  require_rank(words, words_field, 0, max_rank - 1);
  if (a.v != nullptr) require_shape(*a.v, "v", words.ndim, words.shape);
  if (a.rounding == VELO_BF16_ROUNDING_HALF_EVEN && a.v == nullptr)
    core::fail(VELO_ERR_NULL, "args.v", "the second moment, because rounding is half_even", "NULL");
}

void infer(const velo_bf16_param_split_args& a, bf16_param_problem& p, output_shapes& outputs) {
  require_rounding(a, *a.master, "master");
  p.count = numel(*a.master);
  const residual_shape residual(*a.master);
  outputs.like(a.param, *a.master, bf16);
  outputs.set(a.residual, u8, residual.rank, residual.sizes);
  if (a.v != nullptr) outputs.like(a.v, *a.v);
}

void infer_merge(const velo_bf16_param_merge_args& a, bf16_param_problem& p,
                 output_shapes& outputs) {
  require_rounding(a, *a.param, "param");
  p.count = numel(*a.param);
  const residual_shape residual(*a.param);
  require_shape(*a.residual, "residual", residual.rank, residual.sizes);
  outputs.like(a.master, *a.param, f32);
  if (a.v != nullptr) outputs.like(a.v, *a.v);
}

// body(type of the moments, their elements or nullptr); without ties the type does not matter.
template <class Args, class Body>
void with_moments(const Args& a, Body&& body) {
  if (a.rounding != VELO_BF16_ROUNDING_HALF_EVEN) return body(static_cast<float*>(nullptr));
  with_element_type(a.v->dtype, [&](auto element) { body(data<decltype(element)>(a.v)); });
}

template <class T>
T* behind(T* first, std::int64_t count) {
  return first == nullptr ? nullptr : first + count;
}

void run(const velo_bf16_param_split_args& a, const bf16_param_problem& p,
         const bf16_param_kernels& kernels, core::execution& on) {
  const row_slices blocks = slice_elements(p.count);
  with_moments(a, [&](auto* v) {
    on.threads.slices(blocks.tasks(), [&, v](std::int64_t task, int) {
      const std::int64_t at = blocks.begin(task);
      kernels.split(bf16_split_slice<std::remove_pointer_t<decltype(v)>>{
          data<const std::uint32_t>(a.master) + at, data<simd::bf16>(a.param) + at,
          data<std::uint8_t>(a.residual) + 2 * at, behind(v, at), blocks.count(task)});
    });
  });
}

void run_merge(const velo_bf16_param_merge_args& a, const bf16_param_problem& p,
               const bf16_param_kernels& kernels, core::execution& on) {
  const row_slices blocks = slice_elements(p.count);
  with_moments(a, [&](auto* v) {
    on.threads.slices(blocks.tasks(), [&, v](std::int64_t task, int) {
      const std::int64_t at = blocks.begin(task);
      kernels.merge(bf16_merge_slice<std::remove_pointer_t<decltype(v)>>{
          data<const simd::bf16>(a.param) + at, data<const std::uint8_t>(a.residual) + 2 * at,
          data<std::uint32_t>(a.master) + at, behind(v, at), blocks.count(task)});
    });
  });
}

}  // namespace

extern const operator_def bf16_param_split_operator = define<infer, run>(bf16_param_kernel_list);
extern const operator_def bf16_param_merge_operator =
    define<infer_merge, run_merge>(bf16_param_kernel_list);

}  // namespace velo::ops
