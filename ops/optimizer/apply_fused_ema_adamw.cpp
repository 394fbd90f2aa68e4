// apply_fused_ema_adamw: Adam or AdamW and a running average of the parameters in one pass, by the
// kernels of apply_fused_adamw. Bytes: 36 a parameter.
#include <cmath>

#include "ops/operator/definition.hpp"
#include "ops/operator/rows.hpp"
#include "ops/optimizer/apply_fused_adamw.hpp"
#include "ops/optimizer/step_number.hpp"
#include "velo/ops_optimizer.h"

namespace velo::ops {
namespace {

using args = velo_apply_fused_ema_adamw_args;

struct ema_problem {
  std::int64_t count;
};

void infer(const args& a, ema_problem& problem, output_shapes& outputs) {
  require_given(a.param, "param");
  const velo_tensor& p = *a.param;
  require_like(*a.grad, "grad", p, "param");
  require_step(a);
  outputs.like(a.param, p);
  outputs.like(a.m, p);
  outputs.like(a.v, p);
  outputs.like(a.ema, p);
  problem.count = numel(p);
}

adamw_factors factors(const args& a) {
  const double step = step_of(a);
  const bool corrects = a.bias_correction != 0, decoupled = a.mode == 1;
  const double rate = corrects ? a.lr / (1 - std::pow(a.beta1, step)) : a.lr;
  const double root = corrects ? 1 / std::sqrt(1 - std::pow(a.beta2, step)) : 1;
  return {1,
          static_cast<float>(a.beta1),
          static_cast<float>(1 - a.beta1),
          static_cast<float>(a.beta2),
          static_cast<float>(1 - a.beta2),
          static_cast<float>(decoupled ? 1 - a.lr * a.weight_decay : 1),
          static_cast<float>(rate),
          static_cast<float>(root),
          static_cast<float>(a.epsilon),
          static_cast<float>(decoupled ? 0 : a.weight_decay),
          static_cast<float>(a.ema_decay),
          static_cast<float>(1 - a.ema_decay)};
}

void run(const args& a, const ema_problem& p, const apply_fused_adamw_kernels& kernels,
         core::execution& on) {
  const adamw_factors by = factors(a);
  const row_slices blocks = slice_elements(p.count);
  on.threads(blocks.tasks(), [&](std::int64_t task, int) {
    const std::int64_t first = blocks.begin(task);
    const adamw_slice<float, float, float> slice{data<float>(a.param) + first,
                                                 nullptr,
                                                 data<const float>(a.grad) + first,
                                                 data<float>(a.m) + first,
                                                 data<float>(a.v) + first,
                                                 nullptr,
                                                 adamw_element::f32,
                                                 data<float>(a.ema) + first,
                                                 blocks.count(task),
                                                 by};
    kernels.update.at(0, 0, 0)(&slice);
  });
}

}  // namespace

extern const operator_def apply_fused_ema_adamw_operator =
    define<infer, run>(apply_fused_adamw_kernel_list);

}  // namespace velo::ops
