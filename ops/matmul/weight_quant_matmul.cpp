// weight_quant_matmul and its gradient with respect to x as operators.
#include <algorithm>

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/quantized_operand.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/widened.hpp"
#include "ops/quant/weight_product.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {
namespace {

struct weight_quant_problem {
  std::int64_t m;
  weight_sizes sizes;
};

quantized_operand weight_of(const velo_weight_quant_matmul_args& a) {
  return {{a.weight, a.scale, a.offset, a.transpose_weight != 0, false}, a.packed};
}
weight_fields fields_of(const velo_weight_quant_matmul_backward_args& a) {
  return {a.weight, a.scale, a.offset, a.transpose_weight != 0, false};
}

// The shape of t with another last dimension, which t must have as `columns`.
void set_last(output_shapes& outputs, output_shapes::output to, const velo_tensor& t,
              const char* field, std::int64_t columns, std::int64_t last) {
  require_rank(t, field, 1);
  std::int64_t sizes[max_rank];
  std::copy_n(t.shape, t.ndim, sizes);
  sizes[t.ndim - 1] = columns;
  require_shape(t, field, t.ndim, sizes);
  sizes[t.ndim - 1] = last;
  outputs.set(to, t.dtype, t.ndim, sizes);
}

void infer(const velo_weight_quant_matmul_args& a, weight_quant_problem& p,
           output_shapes& outputs) {
  p.sizes = weight_of(a).require(a.x->dtype, 1);
  set_last(outputs, a.y, *a.x, "x", p.sizes.k, p.sizes.n);
  p.m = row_count(*a.x);
  if (a.bias == nullptr) return;
  require_f32_or(*a.bias, "bias", a.x->dtype);
  require_shape(*a.bias, "bias", 1, &p.sizes.n);
}

void infer_backward(const velo_weight_quant_matmul_backward_args& a, weight_quant_problem& p,
                    output_shapes& outputs) {
  p.sizes = sizes_of(fields_of(a), a.dy->dtype);
  set_last(outputs, a.dx, *a.dy, "dy", p.sizes.n, p.sizes.k);
  p.m = row_count(*a.dy);
}

void run(const velo_weight_quant_matmul_args& a, const weight_quant_problem& p,
         const weight_quant_kernels& kernels, core::execution& on) {
  const float* bias = a.bias == nullptr ? nullptr : widened(*a.bias, on);
  const element_type type = type_of(a.x->dtype);
  const quantized_operand operand = weight_of(a);
  const quantized_in_use weight(operand, p.sizes);
  multiply({weight.matrix(0), false, p.m, data<const char>(a.x), type, bias, data<char>(a.y), type,
            a.row_invariant != 0},
           kernels, on);
}

void run_backward(const velo_weight_quant_matmul_backward_args& a, const weight_quant_problem& p,
                  const weight_quant_kernels& kernels, core::execution& on) {
  const element_type type = type_of(a.dy->dtype);
  multiply({matrix_of(fields_of(a), p.sizes, 0), true, p.m, data<const char>(a.dy), type, nullptr,
            data<char>(a.dx), type},
           kernels, on);
}

double flops_of(const weight_quant_problem& p) {
  return 2 * static_cast<double>(p.m) * static_cast<double>(p.sizes.n) *
         static_cast<double>(p.sizes.k);
}

void cost_of(const velo_weight_quant_matmul_args& a, const weight_quant_problem& p, op_cost& cost) {
  cost.multiply(flops_of(p), flops_of(p),
                factors_of(p.m, a.x->dtype, a.offset, a.row_invariant != 0));
  cost.bytes_read += weight_of(a).packed_bytes(p.sizes);
}

void cost_of_backward(const velo_weight_quant_matmul_backward_args&, const weight_quant_problem& p,
                      op_cost& cost) {
  cost.multiply(flops_of(p), flops_of(p), f32);
}

}  // namespace

extern const operator_def weight_quant_matmul_operator =
    with_cost<cost_of>(define<infer, run>(weight_quant_kernel_list));
extern const operator_def weight_quant_matmul_backward_operator =
    with_cost<cost_of_backward>(define<infer_backward, run_backward>(weight_quant_kernel_list));

}  // namespace velo::ops
