// apply_fused_adamw and multi_tensor_adamw as operators: which tensors go together, and the factors
// of a step.
#include "ops/optimizer/apply_fused_adamw.hpp"

#include <cmath>

#include "ops/operator/definition.hpp"
#include "ops/optimizer/adamw_update.hpp"
#include "ops/optimizer/step_number.hpp"
#include "velo/ops_optimizer.h"

namespace velo::ops {
namespace {

struct no_problem {};

// The tensors that both operators have besides those that they update, and amsgrad's.
template <class Args>
void require_scalars(const Args& a) {
  if (a.scale != nullptr) require_rank(*a.scale, "scale", 0, 0);
  require_step(a);
  if (a.lr_tensor != nullptr) require_rank(*a.lr_tensor, "lr_tensor", 0, 0);
  if (a.amsgrad != 0 && a.v_max == nullptr)
    core::fail(VELO_ERR_NULL, "args.v_max", "given, because amsgrad is set", "NULL");
}

adamw_lists lists_of(const velo_apply_fused_adamw_args& a) {
  return {1, a.param, a.grad, a.m, a.v, a.master, a.v_max};
}

adamw_lists lists_of(const velo_multi_tensor_adamw_args& a) {
  const velo_tensors& param = require_list(a.param, "param");
  return {param.count,
          param.data,
          tensors_beside(a.grad, "grad", param),
          tensors_beside(&require_list(a.m, "m"), "m", param),
          tensors_beside(&require_list(a.v, "v"), "v", param),
          tensors_beside(a.master, "master", param),
          tensors_beside(a.v_max, "v_max", param)};
}

void infer(const velo_apply_fused_adamw_args& a, no_problem&, output_shapes& outputs) {
  require_given(a.param, "param");
  require_given(a.m, "m");
  require_given(a.v, "v");
  require_scalars(a);
  require_update(lists_of(a), false);
  outputs.like(a.param, *a.param);
  outputs.like(a.m, *a.m);
  outputs.like(a.v, *a.v);
  if (a.master != nullptr) outputs.like(a.master, *a.master);
  if (a.v_max != nullptr) outputs.like(a.v_max, *a.v_max);
}

void infer_lists(const velo_multi_tensor_adamw_args& a, no_problem&, output_shapes&) {
  require_scalars(a);
  require_update(lists_of(a), true);
}

template <class Args>
adamw_factors factors(const Args& a) {
  const double step = step_of(a);
  const double lr = a.lr_tensor == nullptr ? a.lr : *data<const float>(a.lr_tensor);
  const float scale = a.scale == nullptr ? 1.0f : *data<const float>(a.scale);
  adamw_factors by = moment_factors(a);
  by.scale = a.maximize != 0 ? -scale : scale;
  by.decay = static_cast<float>(1 - lr * a.weight_decay);
  by.rate = static_cast<float>(lr / (1 - std::pow(a.beta1, step)));
  by.root = static_cast<float>(1 / std::sqrt(1 - std::pow(a.beta2, step)));
  return by;
}

template <class Args>
void run(const Args& a, const no_problem&, const apply_fused_adamw_kernels& kernels,
         core::execution& on) {
  adamw_lists lists = lists_of(a);
  if (a.amsgrad == 0) lists.v_max = nullptr;
  update(lists, factors(a), kernels, on);
}

}  // namespace

extern const operator_def apply_fused_adamw_operator =
    define<infer, run<velo_apply_fused_adamw_args>>(apply_fused_adamw_kernel_list);
extern const operator_def multi_tensor_adamw_operator =
    define<infer_lists, run<velo_multi_tensor_adamw_args>>(apply_fused_adamw_kernel_list);

}  // namespace velo::ops
