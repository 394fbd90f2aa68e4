// ffn as an operator: y = act(x W1 + b1) W2 + b2, for rows in groups of an expert each or all of
// one, in three forms. It is made of the products of other operators.
//
//   plain         products of x's dtype; what lies between is rounded to it
//   weights only  weights of int8 or int4 (weight_product.hpp); what lies between is float32
//   integers      x and weights int8 (integer_matmul.hpp); what lies between is quantized again
#include <algorithm>
#include <new>

#include "ops/activation/gated.hpp"
#include "ops/activation/pointwise.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/group_list.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/kernels_at.hpp"
#include "ops/operator/rows.hpp"
#include "ops/operator/widened.hpp"
#include "ops/quant/integer_matmul.hpp"
#include "ops/quant/packed_scales.hpp"
#include "ops/quant/weight_product.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {
namespace {

using core::fail;
using core::text;
using args = velo_ffn_args;

enum class form : int { plain, weights_only, integers };

struct ffn_problem {
  form kind;
  bool experts;  // all weights, biases and scales have a leading dimension for them
  std::int64_t groups;
  std::int64_t m, k1, n1, k2, n2;
  weight_sizes first, second;  // of the form with weights only
};

bool is_gated(std::int64_t activation) {
  return activation >= VELO_FFN_ACTIVATION_GEGLU;
}
activation_function function_of(std::int64_t activation) {
  switch (activation) {
    case VELO_FFN_ACTIVATION_FASTGELU:
      return fast_gelu;
    case VELO_FFN_ACTIVATION_RELU:
    case VELO_FFN_ACTIVATION_REGLU:
      return relu;
    case VELO_FFN_ACTIVATION_SILU:
    case VELO_FFN_ACTIVATION_SWIGLU:
      return silu;
    default:
      return gelu;
  }
}

// ---- checks ----

struct named_tensor {
  const velo_tensor* tensor;
  const char* field;
};

void refuse_all(std::initializer_list<named_tensor> all, const char* expected) {
  for (const named_tensor& t : all)
    if (t.tensor != nullptr)
      fail(VELO_ERR_ARGUMENT, text("args.%s", t.field), expected, "a tensor");
}

// [experts, n], or [n] without experts.
void require_columns(const velo_tensor& t, const char* field, const ffn_problem& p,
                     std::int64_t n) {
  const std::int64_t wanted[] = {p.groups, n};
  require_shape(t, field, p.experts ? 2 : 1, wanted + (p.experts ? 0 : 1));
}

void require_bias_dtype(const velo_tensor* bias, const char* field, form kind, velo_dtype x) {
  if (bias == nullptr) return;
  if (kind == form::integers)
    require_dtype(*bias, field, i32);
  else
    require_f32_or(*bias, field, x);
}

void require_matrix(const velo_tensor& w, const char* field, const ffn_problem& p, std::int64_t k,
                    std::int64_t n) {
  const std::int64_t wanted[] = {p.groups, k, n};
  require_shape(w, field, p.experts ? 3 : 2, wanted + (p.experts ? 0 : 1));
}

form form_of(const args& a) {
  const velo_tensor &x = *a.x, &w = *a.weight1;
  require_dtype(*a.weight2, "weight2", w.dtype);
  if (x.dtype == i8) {
    require_dtype(w, "weight1", i8);
    return form::integers;
  }
  if (w.dtype == x.dtype) return form::plain;
  const std::uint32_t bits = dtype_bit_of(w.dtype);
  if ((bits & (dtype_i8 | dtype_u8 | dtype_i4)) == 0) require_dtype(w, "weight1", x.dtype);
  return form::weights_only;
}

weight_fields first_weight(const args& a, const ffn_problem& p) {
  return {a.weight1, a.antiquant_scale1, a.antiquant_offset1, false,
          p.experts, "weight1",          "antiquant_scale1",  "antiquant_offset1"};
}
weight_fields second_weight(const args& a, const ffn_problem& p) {
  return {a.weight2, a.antiquant_scale2, a.antiquant_offset2, false,
          p.experts, "weight2",          "antiquant_scale2",  "antiquant_offset2"};
}

// float32 or packed for float16, bfloat16 for bfloat16, as MindSpeed has it; float32 for both.
void require_scale_dtype(const velo_tensor& t, const char* field, std::int64_t output) {
  if (t.dtype != f32 && t.dtype != i64)
    require_dtype(t, field, output == VELO_QUANT_OUTPUT_BFLOAT16 ? bf16 : f32);
}

// Whether a scale has a number for each column, rather than one for all, or one for each expert.
bool has_columns(const velo_tensor& scale, const ffn_problem& p) {
  return p.experts ? scale.ndim == 2 : scale.ndim != 1 || scale.shape[0] != 1;
}

void check_integers(const args& a, const ffn_problem& p) {
  require_columns(*a.deq_scale1, "deq_scale1", p, p.n1);
  require_columns(*a.deq_scale2, "deq_scale2", p, p.n2);
  const auto require_few = [&](const velo_tensor& t, const char* field) {
    if (t.ndim != 1 || t.shape[0] != 1) require_shape(t, field, 1, &p.groups);
  };
  if (has_columns(*a.scale, p))
    require_columns(*a.scale, "scale", p, p.n1);
  else
    require_few(*a.scale, "scale");
  if (a.offset != nullptr) require_few(*a.offset, "offset");
  for (const std::int64_t k : {p.k1, p.k2})
    if (k > most_integer_depth)
      fail(VELO_ERR_SHAPE, "args.x.shape", core::concat("depths of at most ", most_integer_depth),
           core::number(k));
}

void check_weights(const args& a, ffn_problem& p) {
  require_given(a.antiquant_scale1, "antiquant_scale1");
  require_given(a.antiquant_scale2, "antiquant_scale2");
  p.first = sizes_of(first_weight(a, p), a.x->dtype);
  p.second = sizes_of(second_weight(a, p), a.x->dtype);
  p.n1 = p.first.n, p.n2 = p.second.n;
}

void check_form(const args& a, const ffn_problem& p) {
  if (p.kind != form::integers)
    refuse_all({{a.scale, "scale"},
                {a.offset, "offset"},
                {a.deq_scale1, "deq_scale1"},
                {a.deq_scale2, "deq_scale2"}},
               "NULL unless x is int8");
  if (p.kind != form::weights_only)
    refuse_all({{a.antiquant_scale1, "antiquant_scale1"},
                {a.antiquant_scale2, "antiquant_scale2"},
                {a.antiquant_offset1, "antiquant_offset1"},
                {a.antiquant_offset2, "antiquant_offset2"}},
               "NULL unless the weights alone are quantized");
  if (p.kind != form::plain && is_gated(a.activation))
    fail(VELO_ERR_ARGUMENT, "args.activation", "one that is not gated, with quantized weights",
         core::number(a.activation));
  if (a.inner_precise != 0 && a.x->dtype == bf16)
    fail(VELO_ERR_ARGUMENT, "args.inner_precise", "0 for bfloat16", core::number(a.inner_precise));
}

// Dtypes before shapes, so that what infers dtypes hears of them.
void check_dtypes(const args& a, form kind) {
  require_bias_dtype(a.bias1, "bias1", kind, a.x->dtype);
  require_bias_dtype(a.bias2, "bias2", kind, a.x->dtype);
  if (kind != form::integers) return;
  require_given(a.scale, "scale");
  require_given(a.deq_scale1, "deq_scale1");
  require_given(a.deq_scale2, "deq_scale2");
  require_scale_dtype(*a.deq_scale1, "deq_scale1", a.output_dtype);
  require_dtype(*a.deq_scale2, "deq_scale2", a.deq_scale1->dtype);
  if (a.output_dtype == VELO_QUANT_OUTPUT_INT8)
    fail(VELO_ERR_ARGUMENT, "args.output_dtype", "float16, bfloat16 or float32", "int8");
}

velo_dtype output_type(const args& a, const ffn_problem& p) {
  if (p.kind != form::integers) return a.x->dtype;
  return a.output_dtype == VELO_QUANT_OUTPUT_BFLOAT16  ? bf16
         : a.output_dtype == VELO_QUANT_OUTPUT_FLOAT32 ? f32
                                                       : f16;
}

void infer(const args& a, ffn_problem& p, output_shapes& outputs) {
  const velo_tensor &x = *a.x, &w = *a.weight1;
  require_rank(x, "x", 1);
  require_rank(w, "weight1", 2, 3);
  p.kind = form_of(a);
  p.experts = w.ndim == 3;
  p.groups = 1;
  p.m = row_count(x), p.k1 = row_size(x);
  require_rank(*a.weight2, "weight2", w.ndim, w.ndim);
  if (p.experts) {
    p.groups = groups_of(a).require(p.m);
  } else if (a.group_list != nullptr || a.group_list_tensor != nullptr) {
    fail(VELO_ERR_ARGUMENT, "args.group_list", "NULL unless weights have experts", "a list");
  }
  check_form(a, p);
  check_dtypes(a, p.kind);
  p.n1 = w.shape[w.ndim - 1], p.n2 = a.weight2->shape[w.ndim - 1];
  if (p.kind == form::weights_only) check_weights(a, p);
  if (is_gated(a.activation) && p.n1 % 2 != 0)
    fail(VELO_ERR_SHAPE, "args.weight1.shape", "an even last dimension, of a gate and its factor",
         core::number(p.n1));
  p.k2 = is_gated(a.activation) ? p.n1 / 2 : p.n1;
  require_below_2_31(std::max({p.k1, p.n1, p.n2}), "weight1");
  const bool pairs = p.kind == form::weights_only && p.first.int4 && w.dtype.bits == 8;
  require_matrix(w, "weight1", p, p.k1, pairs ? p.n1 / 2 : p.n1);
  require_matrix(*a.weight2, "weight2", p, p.k2, pairs ? p.n2 / 2 : p.n2);
  if (p.kind == form::integers) check_integers(a, p);
  if (a.bias1 != nullptr) require_columns(*a.bias1, "bias1", p, p.n1);
  if (a.bias2 != nullptr) require_columns(*a.bias2, "bias2", p, p.n2);
  std::int64_t sizes[max_rank];
  std::copy_n(x.shape, x.ndim, sizes);
  sizes[x.ndim - 1] = p.n2;
  outputs.set(a.y, output_type(a, p), x.ndim, sizes);
}

// ---- runs ----

const std::int64_t* bounds_of(const args& a, const ffn_problem& p, core::execution& on) {
  if (p.experts) return groups_of(a).bounds(p.m, on.scratch);
  auto* all = on.scratch.take<std::int64_t>(2);
  all[0] = 0, all[1] = p.m;
  return all;
}

const float* widened_or_null(const velo_tensor* t, core::execution& on) {
  return t == nullptr ? nullptr : widened(*t, on);
}

// The activation of all rows of h [m][n1]: in place, or gated into another matrix.
template <class T>
T* activate(const args& a, const ffn_problem& p, T* h, core::isa isa, core::execution& on) {
  const activation_function function = function_of(a.activation);
  if (!is_gated(a.activation)) {
    const auto& kernels = kernels_at<pointwise_kernels>(pointwise_kernel_list, isa);
    const row_slices blocks = slice_elements(p.m * p.n1);
    on.threads.slices(blocks.tasks(), [&](std::int64_t task, int) {
      T* at = h + blocks.begin(task);
      kernels.forward[function](pointwise_slice<T>{at, at, blocks.count(task), false});
    });
    return h;
  }
  const auto& kernels = kernels_at<gated_kernels>(gated_kernel_list, isa);
  T* out = on.scratch.take<T>(static_cast<std::size_t>(p.m * p.k2));
  const row_slices slices = slice_rows(p.m, p.n1 * static_cast<std::int64_t>(sizeof(T)));
  on.threads.slices(slices.tasks(), [&](std::int64_t task, int) {
    for (std::int64_t r = slices.begin(task); r < slices.begin(task) + slices.count(task); ++r) {
      const T* gate = h + r * p.n1;
      kernels.forward[function](gated_slice<T>{gate, gate + p.k2, out + r * p.k2, p.k2, false});
    }
  });
  return out;
}

// Rows of each group of x [m][k] by its weight, and its bias.
void multiply_all(const ffn_problem& p, const std::int64_t* bounds, const velo_tensor& weight,
                  const void* x, const float* bias, void* y, std::int64_t k, std::int64_t n,
                  const gemm_kernels& kernels, core::execution& on) {
  const auto bytes = [&](std::int64_t elements) { return bytes_of(weight.dtype, elements); };
  const core::scratch_scope scope(on.scratch);
  auto* all = on.scratch.take<gemm_problem>(static_cast<std::size_t>(p.groups));
  for (std::int64_t e = 0; e < p.groups; ++e) {
    auto* one = new (all + e) gemm_problem;
    const std::int64_t first = bounds[e];
    one->type = one->c_type = type_of(weight.dtype);
    one->m = bounds[e + 1] - first, one->n = n, one->k = k;
    one->a = static_cast<const char*>(x) + bytes(first * k), one->lda = k;
    one->b = data<const char>(&weight) + bytes(e * k * n), one->ldb = n;
    one->c = static_cast<char*>(y) + bytes(first * n), one->ldc = n;
    one->epilogue.bias = bias == nullptr ? nullptr : bias + e * n;
  }
  multiply_groups(all, p.groups, kernels, on);
}

template <class T>
void run_plain(const args& a, const ffn_problem& p, const gemm_kernels& kernels,
               core::execution& on) {
  const std::int64_t* bounds = bounds_of(a, p, on);
  const float *bias1 = widened_or_null(a.bias1, on), *bias2 = widened_or_null(a.bias2, on);
  T* h = on.scratch.take<T>(static_cast<std::size_t>(p.m * p.n1));
  multiply_all(p, bounds, *a.weight1, data<const char>(a.x), bias1, h, p.k1, p.n1, kernels, on);
  const T* between = activate(a, p, h, kernels.isa, on);
  multiply_all(p, bounds, *a.weight2, between, bias2, data<char>(a.y), p.k2, p.n2, kernels, on);
}

void run_weights(const args& a, const ffn_problem& p, core::isa isa, core::execution& on) {
  const auto& kernels = kernels_at<weight_quant_kernels>(weight_quant_kernel_list, isa);
  const std::int64_t* bounds = bounds_of(a, p, on);
  const float *bias1 = widened_or_null(a.bias1, on), *bias2 = widened_or_null(a.bias2, on);
  auto* h = on.scratch.take<float>(static_cast<std::size_t>(p.m * p.n1));
  const velo_dtype type = a.x->dtype;
  const auto bias_of = [](const float* bias, std::int64_t first) {
    return bias == nullptr ? nullptr : bias + first;
  };
  for (std::int64_t e = 0; e < p.groups; ++e) {
    const std::int64_t first = bounds[e];
    multiply({matrix_of(first_weight(a, p), p.first, e), false, bounds[e + 1] - first,
              data<const char>(a.x) + bytes_of(type, first * p.k1), type_of(type),
              bias_of(bias1, e * p.n1), h + first * p.n1, element_type::f32, a.row_invariant != 0},
             kernels, on);
  }
  activate(a, p, h, isa, on);
  for (std::int64_t e = 0; e < p.groups; ++e) {
    const std::int64_t first = bounds[e];
    multiply({matrix_of(second_weight(a, p), p.second, e), false, bounds[e + 1] - first,
              h + first * p.n1, element_type::f32, bias_of(bias2, e * p.n2),
              data<char>(a.y) + bytes_of(type, first * p.n2), type_of(type), a.row_invariant != 0},
             kernels, on);
  }
}

// round(h * scale + offset), to nearest even, within int8; what is no number is 0.
void quantize_row(const float* h, const float* scale, bool each, float offset, std::int8_t* q,
                  std::int64_t n) {
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23, whose last bit is 1
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = h[i] * scale[each ? i : 0] + offset;
    const float kept = x != x ? 0 : std::min(127.0f, std::max(-128.0f, x));
    q[i] = static_cast<std::int8_t>(static_cast<int>((kept + shift) - shift));
  }
}

void run_integers(const args& a, const ffn_problem& p, core::isa isa, core::execution& on) {
  const auto& kernels = kernels_at<integer_product_kernels>(integer_product_kernel_list, isa);
  const std::int64_t* bounds = bounds_of(a, p, on);
  const float *deq1 = scales_of(*a.deq_scale1, on), *deq2 = scales_of(*a.deq_scale2, on);
  const auto *bias1 = data<const std::int32_t>(a.bias1), *bias2 = data<const std::int32_t>(a.bias2);
  const auto *scale = data<const float>(a.scale), *offset = data<const float>(a.offset);
  const bool each = has_columns(*a.scale, p);
  auto* h = on.scratch.take<float>(static_cast<std::size_t>(p.m * p.n1));
  auto* q = on.scratch.take<std::int8_t>(static_cast<std::size_t>(p.m * p.n1));
  for (std::int64_t e = 0; e < p.groups; ++e) {
    const std::int64_t first = bounds[e], rows = bounds[e + 1] - first;
    const std::int64_t own = numel(*a.scale) == 1 ? 0 : e;
    const float* own_scale = scale + (each ? e * p.n1 : own);
    const float own_offset = offset == nullptr ? 0 : offset[numel(*a.offset) == 1 ? 0 : e];
    multiply({rows, p.n1, p.k1, data<const std::int8_t>(a.x) + first * p.k1,
              data<const std::int8_t>(a.weight1) + e * p.k1 * p.n1, false,
              bias1 == nullptr ? nullptr : bias1 + e * p.n1, deq1 + e * p.n1, nullptr,
              function_of(a.activation), h + first * p.n1, false, element_type::f32},
             kernels, on);
    on.threads.slices(rows * p.n1 >> 14, rows, [&](std::int64_t r, int) {
      quantize_row(h + (first + r) * p.n1, own_scale, each, own_offset, q + (first + r) * p.n1,
                   p.n1);
    });
    multiply(
        {rows, p.n2, p.k2, q + first * p.k2, data<const std::int8_t>(a.weight2) + e * p.k2 * p.n2,
         false, bias2 == nullptr ? nullptr : bias2 + e * p.n2, deq2 + e * p.n2, nullptr, -1,
         data<char>(a.y) + bytes_of(a.y->dtype, first * p.n2), false, type_of(a.y->dtype)},
        kernels, on);
  }
}

void run(const args& a, const ffn_problem& p, const gemm_kernels& kernels, core::execution& on) {
  if (p.kind == form::weights_only) return run_weights(a, p, kernels.isa, on);
  if (p.kind == form::integers) return run_integers(a, p, kernels.isa, on);
  with_element_type(a.x->dtype,
                    [&](auto element) { run_plain<decltype(element)>(a, p, kernels, on); });
}

const char* reject(const args& a, const ffn_problem& p, const kernel_entry& kernel) {
  if (p.kind == form::plain) return reject_product(kernel, type_of(a.x->dtype));
  return nullptr;
}

// A cost has one dtype: quantized weights alone count as float32, although the first product may be
// one of bf16.
void cost_of(const args& a, const ffn_problem& p, op_cost& cost) {
  const double flops = 2 * static_cast<double>(p.m) *
                       (static_cast<double>(p.k1) * static_cast<double>(p.n1) +
                        static_cast<double>(p.k2) * static_cast<double>(p.n2));
  cost.multiply(flops, flops, p.kind == form::weights_only ? f32 : a.x->dtype);
}

}  // namespace

extern const operator_def ffn_operator =
    with_cost<cost_of>(define<infer, run, reject>(gemm_kernel_list));

}  // namespace velo::ops
