// apply_fused_ema_adamw and multi_tensor_ema_adamw: Adam or AdamW and a running average of the
// parameters in one pass, by the kernels of apply_fused_adamw. Bytes: 36 a parameter.
#include <cmath>

#include "ops/operator/definition.hpp"
#include "ops/optimizer/adamw_update.hpp"
#include "ops/optimizer/step_number.hpp"
#include "velo/ops_optimizer.h"

namespace velo::ops {
namespace {

struct no_problem {};

adamw_lists lists_of(const velo_apply_fused_ema_adamw_args& a) {
  return {1, a.param, a.grad, a.m, a.v, nullptr, nullptr, a.ema};
}

adamw_lists lists_of(const velo_multi_tensor_ema_adamw_args& a) {
  const velo_tensors& param = require_list(a.param, "param");
  return {param.count,
          param.data,
          tensors_beside(a.grad, "grad", param),
          tensors_beside(&require_list(a.m, "m"), "m", param),
          tensors_beside(&require_list(a.v, "v"), "v", param),
          nullptr,
          nullptr,
          tensors_beside(&require_list(a.ema, "ema"), "ema", param)};
}

void infer(const velo_apply_fused_ema_adamw_args& a, no_problem&, output_shapes& outputs) {
  require_given(a.param, "param");
  const velo_tensor& p = *a.param;
  require_like(*a.grad, "grad", p, "param");
  require_step(a);
  outputs.like(a.param, p);
  outputs.like(a.m, p);
  outputs.like(a.v, p);
  outputs.like(a.ema, p);
}

void infer_lists(const velo_multi_tensor_ema_adamw_args& a, no_problem&, output_shapes&) {
  require_step(a);
  require_update(lists_of(a), true);
}

template <class Args>
adamw_factors factors(const Args& a) {
  const double step = step_of(a);
  const bool corrects = a.bias_correction != 0, decoupled = a.mode == 1;
  const double rate = corrects ? a.lr / (1 - std::pow(a.beta1, step)) : a.lr;
  const double root = corrects ? 1 / std::sqrt(1 - std::pow(a.beta2, step)) : 1;
  adamw_factors by = moment_factors(a);
  by.scale = 1;
  by.decay = static_cast<float>(decoupled ? 1 - a.lr * a.weight_decay : 1);
  by.rate = static_cast<float>(rate);
  by.root = static_cast<float>(root);
  by.l2 = static_cast<float>(decoupled ? 0 : a.weight_decay);
  by.average = static_cast<float>(a.ema_decay);
  by.one_minus_average = static_cast<float>(1 - a.ema_decay);
  return by;
}

template <class Args>
void run(const Args& a, const no_problem&, const apply_fused_adamw_kernels& kernels,
         core::execution& on) {
  update(lists_of(a), factors(a), kernels, on);
}

}  // namespace

extern const operator_def apply_fused_ema_adamw_operator =
    define<infer, run<velo_apply_fused_ema_adamw_args>>(apply_fused_adamw_kernel_list);
extern const operator_def multi_tensor_ema_adamw_operator =
    define<infer_lists, run<velo_multi_tensor_ema_adamw_args>>(apply_fused_adamw_kernel_list);

}  // namespace velo::ops
