// matmul, matmul_add and matmul_add_fp32 as operators: shapes, strides, and which form of the
// engine serves.
//
// Leading dimensions of `a` fold into its rows; what cannot fold is refused. matmul_add is matmul
// with a residual in the epilogue, where a bias that is not a row goes, too. matmul_add_fp32 is the
// engine's product with a transposed A that adds to a float32 C.
#include <algorithm>

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/broadcast.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/matmul/weight_operand.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/widened.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {
namespace {

// What matmul has and matmul_add has not.
bool accumulates(const velo_matmul_args& a) {
  return a.accumulate != 0;
}
bool accumulates(const velo_matmul_add_args&) {
  return false;
}
// Whether c is a field that may be read.
constexpr bool has_old_c(const velo_matmul_args&) {
  return true;
}
constexpr bool has_old_c(const velo_matmul_add_args&) {
  return false;
}
velo_dtype dtype_of_c(const velo_matmul_args& a) {
  return a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : a.a->dtype;
}
velo_dtype dtype_of_c(const velo_matmul_add_args& a) {
  return a.a->dtype;
}

template <class Args>
weight_operand weight_of(const Args& a) {
  return {a.b, a.packed, a.transpose_b != 0, "b", "transpose_b"};
}
// Its factors are inputs alone.
weight_operand weight_of(const velo_matmul_add_fp32_args&) {
  return {};
}

// The product without its pointers and its bias, and how what is added to it is read.
struct matmul_problem {
  gemm_problem product;
  broadcast residual;
  bool bias_is_row;  // one for each column, as the engine adds it; otherwise it is the residual
};

void infer_added(const velo_matmul_args& a, matmul_problem& problem, const std::int64_t* shape) {
  problem.bias_is_row = true;
  if (a.bias == nullptr) return;
  require_f32_or(*a.bias, "bias", a.a->dtype);
  problem.residual = require_broadcast(*a.bias, "bias", a.a->ndim, shape);
  problem.bias_is_row = is_row(*a.bias, shape[a.a->ndim - 1]);
}
void infer_added(const velo_matmul_add_args& a, matmul_problem& problem,
                 const std::int64_t* shape) {
  problem.bias_is_row = true;
  const std::int64_t n = shape[a.a->ndim - 1];
  if (a.bias != nullptr) {
    if (a.bias->ndim > a.a->ndim || !is_row(*a.bias, n)) require_shape(*a.bias, "bias", 1, &n);
    require_f32_or(*a.bias, "bias", a.a->dtype);
  }
  require_dtype(*a.add, "add", a.a->dtype);
  problem.residual = require_broadcast(*a.add, "add", a.a->ndim, shape);
}

template <class Args>
void infer(const Args& a, matmul_problem& problem, output_shapes& outputs) {
  require_rank(*a.a, "a", 2, a.transpose_a != 0 ? 2 : max_rank);
  gemm_problem& p = problem.product;
  const bool transposed = a.transpose_a != 0;
  const folded left = fold(*a.a, "a");
  p.m = transposed ? left.columns : left.rows;
  p.k = transposed ? left.rows : left.columns;
  p.lda = left.ld;
  weight_of(a).require(a.a->dtype, p);
  require_below_2_31(std::max(p.n, p.k), a.packed != nullptr ? "a" : "b");
  std::int64_t shape[max_rank];
  for (int i = 0; i < a.a->ndim; ++i) shape[i] = a.a->shape[i];
  if (transposed) shape[0] = p.m;
  shape[a.a->ndim - 1] = p.n;
  p.type = type_of(a.a->dtype);
  p.transpose_a = transposed;
  p.epilogue.accumulate = accumulates(a);
  infer_added(a, problem, shape);
  outputs.set(a.c, dtype_of_c(a), a.a->ndim, shape);
  if (a.c != nullptr) {
    const folded c = fold(*a.c, "c");
    p.ldc = c.ld;
    p.c_type = type_of(a.c->dtype);
  }
}

// grad[n][k] += grad_output[t][n]^T * total_input[t][k]: the tokens are the depth.
void infer_add(const velo_matmul_add_fp32_args& a, matmul_problem& problem,
               output_shapes& outputs) {
  const velo_tensor &x = *a.total_input, &dy = *a.grad_output;
  require_rank(x, "total_input", 2);
  require_rank(dy, "grad_output", x.ndim, x.ndim);
  require_dtype(dy, "grad_output", x.dtype);
  std::int64_t wanted[max_rank];
  for (int i = 0; i < x.ndim; ++i) wanted[i] = x.shape[i];
  wanted[x.ndim - 1] = dy.shape[x.ndim - 1];
  require_shape(dy, "grad_output", x.ndim, wanted);
  const std::int64_t shape[] = {dy.shape[dy.ndim - 1], x.shape[x.ndim - 1]};
  require_below_2_31(std::max(row_count(x), shape[1]), "total_input");
  outputs.set(a.grad, f32, 2, shape);
  gemm_problem& p = problem.product;
  p.m = shape[0];
  p.n = shape[1];
  p.k = row_count(x);
  p.type = type_of(x.dtype);
  p.lda = p.m;
  p.transpose_a = true;
  p.ldb = p.n;
  p.ldc = p.n;
  p.epilogue.accumulate = true;
}

void place_residual(const broadcast& b, const void* data, bool in_f32, gemm_problem& p,
                    core::execution& on) {
  p.epilogue.residual = {data, b.ld, b.at_one_distance ? nullptr : b.rows(p.m, on.scratch),
                         b.one_column, in_f32};
}

// A bias of another dtype than c's is read as float32.
void place_added(const velo_matmul_args& a, const matmul_problem& problem, gemm_problem& p,
                 core::execution& on) {
  if (problem.bias_is_row) return;
  const bool as_c = type_of(a.bias->dtype) == p.c_type;
  const void* bias = as_c ? data<const void>(a.bias) : widened(*a.bias, on);
  place_residual(problem.residual, bias, !as_c, p, on);
}
void place_added(const velo_matmul_add_args& a, const matmul_problem& problem, gemm_problem& p,
                 core::execution& on) {
  place_residual(problem.residual, data<const void>(a.add), false, p, on);
}

template <class Args>
gemm_problem placed(const Args& a, const matmul_problem& problem, core::execution& on) {
  gemm_problem p = problem.product;
  p.a = data<const void>(a.a);
  p.b = data<const void>(a.b);
  p.c = data<void>(a.c);
  if (a.bias != nullptr && problem.bias_is_row) p.epilogue.bias = widened(*a.bias, on);
  place_added(a, problem, p, on);
  return p;
}

gemm_problem placed(const velo_matmul_add_fp32_args& a, const matmul_problem& problem,
                    core::execution&) {
  gemm_problem p = problem.product;
  p.a = data<const void>(a.grad_output);
  p.b = data<const void>(a.total_input);
  p.c = data<void>(a.grad);
  return p;
}

template <class Args>
void run(const Args& a, const matmul_problem& problem, const gemm_kernels& kernels,
         core::execution& on) {
  gemm_problem p = placed(a, problem, on);
  const weight_in_use weight(weight_of(a));
  p.packed_b = weight.matrix();
  multiply(p, kernels, on);
}

template <class Args>
const char* reject(const Args& a, const matmul_problem& problem, const kernel_entry& kernel) {
  if (const char* why = reject_product(kernel, problem.product.type)) return why;
  return weight_of(a).reject(kernel);
}

template <class Args>
void cost_of(const Args& a, const matmul_problem& problem, op_cost& cost) {
  const gemm_problem& p = problem.product;
  cost.multiply(flops_of(p), flops_of(p), a.a->dtype);
  cost.bytes_read += weight_of(a).packed_bytes(a.a->dtype, 1, p.k, p.n);
  if (has_old_c(a) && !accumulates(a))
    cost.bytes_read -= cost.bytes_written;  // c is read to add to it alone
}

void cost_of_add(const velo_matmul_add_fp32_args& a, const matmul_problem& problem, op_cost& cost) {
  const double flops = flops_of(problem.product);
  cost.multiply(flops, flops, a.total_input->dtype);
}

}  // namespace

extern const operator_def matmul_operator = with_cost<cost_of<velo_matmul_args>>(
    define<infer<velo_matmul_args>, run<velo_matmul_args>, reject<velo_matmul_args>>(
        gemm_kernel_list));
extern const operator_def matmul_add_operator = with_cost<cost_of<velo_matmul_add_args>>(
    define<infer<velo_matmul_add_args>, run<velo_matmul_add_args>, reject<velo_matmul_add_args>>(
        gemm_kernel_list));
extern const operator_def matmul_add_fp32_operator = with_cost<cost_of_add>(
    define<infer_add, run<velo_matmul_add_fp32_args>, reject<velo_matmul_add_fp32_args>>(
        gemm_kernel_list));

}  // namespace velo::ops
