// The checks of quantized operands, and their products.
#include "sched/overlap/quantized_product.hpp"

#include <algorithm>
#include <cstring>

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/quantized_operand.hpp"
#include "ops/operator/kernels_at.hpp"
#include "ops/operator/output_shapes.hpp"
#include "ops/quant/packed_scales.hpp"
#include "ops/quant/weight_product.hpp"

namespace velo::sched {
namespace {

using core::fail;
using ops::operator==;
using ops::operator!=;

void require_null(const void* value, const char* field, const char* why,
                  const char* got = "a tensor") {
  if (value != nullptr)
    fail(VELO_ERR_ARGUMENT, core::text("args.%s", field), core::text("NULL, because %s", why), got);
}

void require_plain(const quantized_operands& by) {
  constexpr const char *no_scale = "args.scale is NULL", *no_dequant = "args.dequant_scale is NULL";
  require_null(by.offset, "offset", no_scale);
  if (by.group_size != 0)
    fail(VELO_ERR_ARGUMENT, "args.group_size", core::text("0, because %s", no_scale),
         core::number(by.group_size));
  require_null(by.per_token_scale, "per_token_scale", no_dequant);
  if (by.x->dtype == core::i8)
    fail(VELO_ERR_DTYPE, "args.x.dtype",
         core::text("float32, bfloat16 or float16, because %s", no_dequant), "int8");
}

// Sets the sizes of y = x @ weight.
void set_product(const velo_tensor& x, std::int64_t k, std::int64_t n, velo_dtype output,
                 overlap_problem& all) {
  ops::require_rank(x, "x", 2);
  std::int64_t wanted[ops::max_rank];
  std::copy_n(x.shape, x.ndim, wanted);
  wanted[x.ndim - 1] = k;
  ops::require_shape(x, "x", x.ndim, wanted);
  ops::gemm_problem& p = all.product;
  p.m = ops::row_count(x), p.k = k, p.n = p.ldc = n;
  p.type = p.c_type = ops::type_of(output);
  all.dtype = output;
}

// ---- a quantized weight ----

ops::weight_fields weight_of(const quantized_operands& by) {
  ops::weight_fields fields{by.weight, by.scale, by.offset, by.transposed, false};
  fields.group_size = by.group_size, fields.single_scale = true;
  return fields;
}

ops::weight_sizes require_weight(const quantized_operands& by, overlap_problem& all) {
  constexpr const char* why = "args.scale is given";
  require_null(by.packed, "packed", why, "a pack");
  require_null(by.dequant_scale, "dequant_scale", why);
  require_null(by.per_token_scale, "per_token_scale", why);
  const velo_dtype stored = by.weight->dtype;
  if (stored.bits > 8)
    fail(VELO_ERR_DTYPE, "args.weight.dtype", "int8, uint8 or int4, because args.scale is given",
         core::dtype_name(stored).buffer);
  if (by.x->dtype == core::i8)
    fail(VELO_ERR_DTYPE, "args.x.dtype",
         "float32, bfloat16 or float16, because args.scale is given", "int8");
  const ops::weight_sizes sizes = ops::sizes_of(weight_of(by), by.x->dtype);
  set_product(*by.x, sizes.k, sizes.n, by.x->dtype, all);
  return sizes;
}

// A tensor's elements, one for each column, in scratch where the tensor has only one.
const void* for_columns(const velo_tensor* t, std::int64_t n, core::arena& scratch) {
  if (t == nullptr) return nullptr;
  const char* const given = ops::data<const char>(t);
  if (t->ndim != 1 || t->shape[0] == n) return given;
  const std::size_t bytes = t->dtype.bits / 8u;
  auto* all = scratch.take<char>(static_cast<std::size_t>(n) * bytes);
  for (std::int64_t j = 0; j < n; ++j)
    std::memcpy(all + static_cast<std::size_t>(j) * bytes, given, bytes);
  return all;
}

ops::weight_matrix matrix_of(const quantized_operands& by, const ops::weight_sizes& sizes,
                             core::arena& scratch) {
  ops::weight_matrix weight = ops::matrix_of(weight_of(by), sizes, 0);
  weight.scales.scale = for_columns(by.scale, sizes.n, scratch);
  weight.scales.offset = for_columns(by.offset, sizes.n, scratch);
  return weight;
}

// ---- int8 by int8 ----

void require_dequant_scale(const velo_tensor& scale, std::int64_t n, velo_dtype output) {
  if (scale.dtype == core::bf16 && output != core::bf16)
    fail(
        VELO_ERR_DTYPE, "args.dequant_scale.dtype",
        core::text("float32, int64 or uint64 for a product of %s", core::dtype_name(output).buffer),
        "bfloat16");
  if (scale.ndim == 1 && scale.shape[0] == 1) return;
  require_columns(scale, "dequant_scale", n);
}

void require_integers(const quantized_operands& by, velo_dtype output, overlap_problem& all) {
  constexpr const char* why = "args.dequant_scale is given";
  require_null(by.packed, "packed", why, "a pack");
  require_null(by.offset, "offset", why);
  if (by.group_size != 0)
    fail(VELO_ERR_ARGUMENT, "args.group_size", core::text("0, because %s", why),
         core::number(by.group_size));
  ops::require_dtype(*by.x, "x", core::i8);
  ops::require_dtype(*by.weight, "weight", core::i8);
  ops::require_rank(*by.weight, "weight", 2, 2);
  const std::int64_t n = by.weight->shape[by.transposed ? 0 : 1];
  const std::int64_t k = by.weight->shape[by.transposed ? 1 : 0];
  if (n >= std::int64_t{1} << 31)
    fail(VELO_ERR_SHAPE, "args.weight.shape", "sizes below 2^31", core::number(n));
  if (k > ops::most_integer_depth)
    fail(VELO_ERR_SHAPE, "args.weight.shape",
         core::concat("a depth of at most ", ops::most_integer_depth), core::number(k));
  set_product(*by.x, k, n, output, all);
  require_dequant_scale(*by.dequant_scale, n, output);
  if (by.bias != nullptr) {
    ops::require_dtype(*by.bias, "bias", core::i32);
    require_columns(*by.bias, "bias", n);
  }
  if (by.per_token_scale != nullptr)
    ops::require_shape(*by.per_token_scale, "per_token_scale", 1, &all.product.m);
}

const float* dequant_scales(const velo_tensor& scale, std::int64_t n, core::arena& scratch) {
  const float* const given = ops::scales_of(scale, scratch);
  if (ops::numel(scale) == n) return given;
  auto* all = scratch.take<float>(core::at(n));
  std::fill_n(all, n, *given);
  return all;
}

ops::integer_matmul integers_of(const quantized_operands& by, const ops::gemm_problem& of,
                                core::arena& scratch) {
  ops::integer_matmul one{};
  one.m = of.m, one.n = of.n, one.k = of.k;
  one.x = ops::data<const std::int8_t>(by.x);
  one.w = ops::data<const std::int8_t>(by.weight);
  one.transposed = by.transposed;
  one.ld = by.transposed ? of.k : of.n;
  one.bias = ops::data<const std::int32_t>(by.bias);
  one.scale = dequant_scales(*by.dequant_scale, of.n, scratch);
  one.row_scale = ops::data<const float>(by.per_token_scale);
  one.function = -1;
  one.to_int8 = false, one.y_type = of.c_type;
  return one;
}

}  // namespace

quantized_sizes require_quantized(const quantized_operands& by, velo_dtype output,
                                  overlap_problem& all) {
  if (by.scale != nullptr) return {quantization::weight, require_weight(by, all)};
  if (by.dequant_scale != nullptr) {
    require_integers(by, output, all);
    return {quantization::integers, {}};
  }
  require_plain(by);
  return {quantization::none, {}};
}

quantized_product::quantized_product(const quantized_operands& by, const quantized_sizes& sizes,
                                     const overlap_problem& all, const float* bias,
                                     core::arena& scratch)
    : how_(sizes.how), of_(all.product), bias_(bias), x_(ops::data<const void>(by.x)) {
  if (how_ == quantization::weight)
    weight_ = matrix_of(by, sizes.weight, scratch);
  else
    integers_ = integers_of(by, of_, scratch);
}

void quantized_product::multiply(const column_range& columns, void* to, overlap_kernel::way how,
                                 core::execution& turn) const {
  if (of_.m == 0 || columns.count == 0) return;
  const core::isa isa = how == overlap_kernel::way::reference ? core::isa::scalar : turn.isa;
  if (how_ == quantization::weight) {
    const float* const bias = bias_ == nullptr ? nullptr : bias_ + columns.first;
    return ops::multiply(
        {ops::columns_of(weight_, columns.first, columns.count), false, of_.m, x_, of_.type, bias,
         to, of_.type},
        ops::kernels_at<ops::weight_quant_kernels>(ops::weight_quant_kernel_list, isa), turn);
  }
  ops::integer_matmul some = integers_;
  some.n = columns.count;
  some.w += columns.first * (some.transposed ? some.ld : 1);
  some.scale += columns.first;
  if (some.bias != nullptr) some.bias += columns.first;
  some.y = to;
  ops::multiply(
      some, ops::kernels_at<ops::integer_product_kernels>(ops::integer_product_kernel_list, isa),
      turn);
}

void multiply_quantized(const quantized_operands& by, const quantized_sizes& sizes,
                        const overlap_problem& all, const float* bias, void* to,
                        overlap_kernel::way how, core::execution& turn) {
  quantized_product(by, sizes, all, bias, turn.scratch).multiply({0, all.product.n}, to, how, turn);
}

void count_product(const quantized_operands& by, quantization how, const overlap_problem& all,
                   ops::op_cost& cost) {
  const ops::gemm_problem& of = all.product;
  const double flops =
      2.0 * static_cast<double>(of.m) * static_cast<double>(of.n) * static_cast<double>(of.k);
  cost.multiply(flops, flops,
                how == quantization::integers ? core::i8
                : how == quantization::weight ? ops::factors_of(of.m, all.dtype, by.offset, false)
                                              : all.dtype);
}

}  // namespace velo::sched
