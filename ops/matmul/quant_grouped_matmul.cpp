// Products of quantized weights for groups of rows as operators: weight_quant_grouped_matmul and
// quant_grouped_matmul. Each group is a product; a list that is wrong is refused before any of
// them.
#include <algorithm>

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/group_list.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/matmul/quantized_operand.hpp"
#include "ops/matmul/weight_operand.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/widened.hpp"
#include "ops/quant/integer_matmul.hpp"
#include "ops/quant/packed_scales.hpp"
#include "ops/quant/weight_product.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {
namespace {

using core::fail;

void require_experts(const velo_tensor* t, const char* field, std::int64_t groups, std::int64_t n) {
  if (t == nullptr) return;
  const std::int64_t wanted[] = {groups, n};
  require_shape(*t, field, 2, wanted);
}

// ---- weight_quant_grouped_matmul ----

struct weight_groups {
  std::int64_t m;
  weight_sizes sizes;
};

quantized_operand weight_of(const velo_weight_quant_grouped_matmul_args& a) {
  return {{a.weight, a.scale, a.offset, a.transpose_weight != 0, true}, a.packed};
}

void infer_weights(const velo_weight_quant_grouped_matmul_args& a, weight_groups& p,
                   output_shapes& outputs) {
  require_rank(*a.x, "x", 2, 2);
  p.m = a.x->shape[0];
  const std::int64_t groups = groups_of(a).require(p.m);
  p.sizes = weight_of(a).require(a.x->dtype, groups);
  require_a_matrix_each(groups, p.sizes.experts, "weight");
  const std::int64_t x[] = {p.m, p.sizes.k}, y[] = {p.m, p.sizes.n};
  require_shape(*a.x, "x", 2, x);
  if (a.bias != nullptr) require_f32_or(*a.bias, "bias", a.x->dtype);
  require_experts(a.bias, "bias", groups, p.sizes.n);
  outputs.set(a.y, a.x->dtype, 2, y);
}

void run_weights(const velo_weight_quant_grouped_matmul_args& a, const weight_groups& p,
                 const weight_quant_kernels& kernels, core::execution& on) {
  const std::int64_t* bounds = groups_of(a).bounds(p.m, on.scratch);
  const float* bias = a.bias == nullptr ? nullptr : widened(*a.bias, on);
  const velo_dtype type = a.x->dtype;
  const quantized_operand operand = weight_of(a);
  const quantized_in_use weight(operand, p.sizes);
  for (std::int64_t e = 0; e < p.sizes.experts; ++e) {
    const std::int64_t first = bounds[e];
    multiply(
        {weight.matrix(e), false, bounds[e + 1] - first,
         data<const char>(a.x) + bytes_of(type, first * p.sizes.k), type_of(type),
         bias == nullptr ? nullptr : bias + e * p.sizes.n,
         data<char>(a.y) + bytes_of(type, first * p.sizes.n), type_of(type), a.row_invariant != 0},
        kernels, on);
  }
}

double flops_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// The groups count as if all had the same number of rows.
void weights_cost(const velo_weight_quant_grouped_matmul_args& a, const weight_groups& p,
                  op_cost& cost) {
  const double flops = flops_of(p.m, p.sizes.n, p.sizes.k);
  const std::int64_t rows = p.m / std::max<std::int64_t>(p.sizes.experts, 1);
  cost.multiply(flops, flops, factors_of(rows, a.x->dtype, a.offset, a.row_invariant != 0));
  cost.bytes_read += weight_of(a).packed_bytes(p.sizes);
}

// ---- quant_grouped_matmul ----

struct integer_groups {
  std::int64_t m, n, k, groups;
};

// The rules of output, scale and what else there may be, as MindSpeed's table has them; float32
// scales serve all outputs.
void require_scales(const velo_quant_grouped_matmul_args& a) {
  const velo_tensor& scale = *a.scale;
  if (a.output_dtype == VELO_QUANT_OUTPUT_INT8) {
    require_f32_or(scale, "scale", i64);
    if (a.per_token_scale != nullptr)
      fail(VELO_ERR_ARGUMENT, "args.per_token_scale", "NULL for an output of int8", "a tensor");
    if (a.act_type != VELO_QUANT_ACTIVATION_NONE)
      fail(VELO_ERR_ARGUMENT, "args.act_type", "none for an output of int8",
           core::number(a.act_type));
  } else if (scale.dtype != f32) {
    require_dtype(scale, "scale", a.output_dtype == VELO_QUANT_OUTPUT_BFLOAT16 ? bf16 : f32);
  }
}

weight_operand weight_of(const velo_quant_grouped_matmul_args& a) {
  return {a.weight, a.packed, a.transpose_weight != 0, "weight", "transpose_weight"};
}

void infer_integers(const velo_quant_grouped_matmul_args& a, integer_groups& p,
                    output_shapes& outputs) {
  require_rank(*a.x, "x", 2, 2);
  p.m = a.x->shape[0], p.k = a.x->shape[1];
  p.groups = groups_of(a).require(p.m);
  p.n = weight_of(a).require_groups(p.groups, i8, p.k);
  require_below_2_31(p.n, "weight");
  if (p.k > most_integer_depth)
    fail(VELO_ERR_SHAPE, "args.x.shape", core::concat("a depth of at most ", most_integer_depth),
         core::number(p.k));
  require_scales(a);
  require_experts(a.scale, "scale", p.groups, p.n);
  require_experts(a.bias, "bias", p.groups, p.n);
  if (a.per_token_scale != nullptr) require_shape(*a.per_token_scale, "per_token_scale", 1, &p.m);
  const std::int64_t y[] = {p.m, p.n};
  outputs.set(a.y,
              a.output_dtype == VELO_QUANT_OUTPUT_INT8       ? i8
              : a.output_dtype == VELO_QUANT_OUTPUT_BFLOAT16 ? bf16
              : a.output_dtype == VELO_QUANT_OUTPUT_FLOAT32  ? f32
                                                             : f16,
              2, y);
}

int function_of(std::int64_t act_type) {
  switch (act_type) {
    case VELO_QUANT_ACTIVATION_RELU:
      return relu;
    case VELO_QUANT_ACTIVATION_GELU_TANH:
      return gelu_tanh;
    case VELO_QUANT_ACTIVATION_GELU:
      return gelu;
    case VELO_QUANT_ACTIVATION_FAST_GELU:
      return fast_gelu;
    case VELO_QUANT_ACTIVATION_SILU:
      return silu;
    default:
      return -1;
  }
}

void run_integers(const velo_quant_grouped_matmul_args& a, const integer_groups& p,
                  const integer_product_kernels& kernels, core::execution& on) {
  const std::int64_t* bounds = groups_of(a).bounds(p.m, on.scratch);
  const float* scales = scales_of(*a.scale, on);
  const auto* bias = data<const std::int32_t>(a.bias);
  const auto* row_scale = data<const float>(a.per_token_scale);
  const weight_in_use weight(weight_of(a));
  const auto* packs = weight.matrices<packed_integers>(p.groups, on.scratch);
  for (std::int64_t e = 0; e < p.groups; ++e) {
    const std::int64_t first = bounds[e];
    integer_matmul one;
    one.m = bounds[e + 1] - first, one.n = p.n, one.k = p.k;
    one.x = data<const std::int8_t>(a.x) + first * p.k;
    if (packs != nullptr) {
      one.packed = packs + e;
    } else {
      one.w = data<const std::int8_t>(a.weight) + e * p.k * p.n;
    }
    one.transposed = a.transpose_weight != 0;
    one.bias = bias == nullptr ? nullptr : bias + e * p.n;
    one.scale = scales + e * p.n;
    one.row_scale = row_scale == nullptr ? nullptr : row_scale + first;
    one.function = function_of(a.act_type);
    one.y = data<char>(a.y) + bytes_of(a.y->dtype, first * p.n);
    one.to_int8 = a.y->dtype == i8;
    one.y_type = type_of(a.y->dtype);
    multiply(one, kernels, on);
  }
}

const char* reject_integers(const velo_quant_grouped_matmul_args& a, const integer_groups&,
                            const kernel_entry& kernel) {
  return weight_of(a).reject_integers(kernel);
}

void integers_cost(const velo_quant_grouped_matmul_args& a, const integer_groups& p,
                   op_cost& cost) {
  const double flops = flops_of(p.m, p.n, p.k);
  cost.multiply(flops, flops, i8);
  cost.bytes_read += weight_of(a).packed_bytes(i8, p.groups, p.k, p.n);
}

}  // namespace

extern const operator_def weight_quant_grouped_matmul_operator =
    with_cost<weights_cost>(define<infer_weights, run_weights>(weight_quant_kernel_list));
extern const operator_def quant_grouped_matmul_operator = with_cost<integers_cost>(
    define<infer_integers, run_integers, reject_integers>(integer_product_kernel_list));

}  // namespace velo::ops
