// apply_fused_adamw as an operator: which tensors go together, the factors of a step, its slices.
#include "ops/optimizer/apply_fused_adamw.hpp"

#include <cmath>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "ops/optimizer/step_number.hpp"
#include "velo/ops_optimizer.h"

namespace velo::ops {
namespace {

using args = velo_apply_fused_adamw_args;

struct apply_fused_adamw_problem {
  std::int64_t count;
};

void infer(const args& a, apply_fused_adamw_problem& problem, output_shapes& outputs) {
  require_given(a.param, "param");
  require_given(a.m, "m");
  require_given(a.v, "v");
  const velo_tensor& p = *a.param;
  require_shape(*a.grad, "grad", p.ndim, p.shape);
  if (a.scale != nullptr) require_rank(*a.scale, "scale", 0, 0);
  require_step(a);
  if (a.lr_tensor != nullptr) require_rank(*a.lr_tensor, "lr_tensor", 0, 0);
  if (a.master != nullptr) require_shape(*a.master, "master", p.ndim, p.shape);
  require_shape(*a.m, "m", p.ndim, p.shape);
  require_like(*a.v, "v", *a.m, "m");
  if (a.amsgrad != 0 && a.v_max == nullptr) {
    core::fail(VELO_ERR_NULL, "args.v_max", "a tensor, because amsgrad is set", "NULL");
  }
  if (a.v_max != nullptr) require_shape(*a.v_max, "v_max", p.ndim, p.shape);
  outputs.like(a.param, p);
  outputs.like(a.m, *a.m);
  outputs.like(a.v, *a.v);
  if (a.master != nullptr) outputs.like(a.master, *a.master);
  if (a.v_max != nullptr) outputs.like(a.v_max, *a.v_max);
  problem.count = numel(p);
}

adamw_factors factors(const args& a) {
  const double step = step_of(a);
  const double lr = a.lr_tensor == nullptr ? a.lr : *data<const float>(a.lr_tensor);
  const float scale = a.scale == nullptr ? 1.0f : *data<const float>(a.scale);
  return {a.maximize != 0 ? -scale : scale,
          static_cast<float>(a.beta1),
          static_cast<float>(1 - a.beta1),
          static_cast<float>(a.beta2),
          static_cast<float>(1 - a.beta2),
          static_cast<float>(1 - lr * a.weight_decay),
          static_cast<float>(lr / (1 - std::pow(a.beta1, step))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(a.beta2, step))),
          static_cast<float>(a.epsilon),
          0,
          0,
          0};
}

// The place of a dtype in a combination.
int index_of(velo_dtype dtype) {
  return dtype == f32 ? 0 : dtype == bf16 ? 1 : 2;
}

template <class Param, class Grad, class Moment>
void update(const args& a, std::int64_t count, core::execution& on, void (*kernel)(const void*)) {
  const adamw_factors by = factors(a);
  const row_slices blocks = slice_elements(count);
  char* v_max = a.amsgrad != 0 ? data<char>(a.v_max) : nullptr;
  const velo_dtype v_max_type = v_max == nullptr ? f32 : a.v_max->dtype;
  on.threads(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task);
    const adamw_slice<Param, Grad, Moment> slice{
        data<Param>(a.param) + first,
        a.master == nullptr ? nullptr : data<float>(a.master) + first,
        data<const Grad>(a.grad) + first,
        data<Moment>(a.m) + first,
        data<Moment>(a.v) + first,
        v_max == nullptr ? nullptr : v_max + first * element_bytes(v_max_type),
        static_cast<adamw_element>(index_of(v_max_type)),
        nullptr,
        blocks.count(task),
        by};
    kernel(&slice);
  });
}

using update_fn = void (*)(const args&, std::int64_t, core::execution&, void (*)(const void*));
struct updates {
  template <class Param, class Grad, class Moment>
  static constexpr auto function = update<Param, Grad, Moment>;
};
constexpr auto by_types = of_each_combination<update_fn>::made<updates>();

void run(const args& a, const apply_fused_adamw_problem& p,
         const apply_fused_adamw_kernels& kernels, core::execution& on) {
  const int param = index_of(a.param->dtype), grad = index_of(a.grad->dtype),
            moment = index_of(a.m->dtype);
  by_types.at(param, grad, moment)(a, p.count, on, kernels.update.at(param, grad, moment));
}

}  // namespace

extern const operator_def apply_fused_adamw_operator =
    define<infer, run>(apply_fused_adamw_kernel_list);

}  // namespace velo::ops
