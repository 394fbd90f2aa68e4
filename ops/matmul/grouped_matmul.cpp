// grouped_matmul, its gradient and grouped_matmul_add_fp32 as operators: a product for each group,
// all of a call in one parallel region (ops/gemm/gemm_groups.hpp).
//
// Groups cut the rows of x, which then meet a weight of their own, or the depth, which gives the
// gradient of such weights. The gradient's three results are more products, sums of columns those
// with ones, so one region has them all.
#include <algorithm>

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/group_list.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/matmul/weight_operand.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "ops/operator/widened.hpp"

namespace velo::ops {
namespace {

using core::fail;

// The sizes of a call: total rows, or total depth, in `groups` groups.
struct grouped_problem {
  std::int64_t groups, m, n, k;
  element_type type;
};

bool cuts_depth(const velo_grouped_matmul_args& a) {
  return a.group_type == VELO_GROUP_TYPE_DEPTH;
}

weight_operand weight_of(const velo_grouped_matmul_args& a) {
  return {a.weight, a.packed, a.transpose_weight != 0, "weight", "transpose_weight"};
}

void infer_rows(const velo_grouped_matmul_args& a, grouped_problem& p, output_shapes& outputs) {
  if (a.transpose_x != 0)
    fail(VELO_ERR_ARGUMENT, "args.transpose_x", "0 unless group_type is depth", "1");
  p.m = a.x->shape[0], p.k = a.x->shape[1];
  p.groups = groups_of(a).require(p.m);
  p.n = weight_of(a).require_groups(p.groups, a.x->dtype, p.k);
  if (a.bias != nullptr) {
    const std::int64_t bias[] = {p.groups, p.n};
    require_shape(*a.bias, "bias", 2, bias);
    require_f32_or(*a.bias, "bias", a.x->dtype);
  }
  const std::int64_t shape[] = {p.m, p.n};
  outputs.set(a.y, a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : a.x->dtype, 2, shape);
}

void infer_depth(const velo_grouped_matmul_args& a, grouped_problem& p, output_shapes& outputs) {
  if (a.packed != nullptr)
    fail(VELO_ERR_ARGUMENT, "args.packed", "NULL where group_type is depth", "a pack");
  require_given(a.weight, "weight");
  const velo_tensor& w = *a.weight;
  require_rank(w, "weight", 2, 2);
  require_dtype(w, "weight", a.x->dtype);
  if (a.bias != nullptr)
    fail(VELO_ERR_ARGUMENT, "args.bias", "NULL where group_type is depth", "a tensor");
  const bool turned_x = a.transpose_x != 0, turned = a.transpose_weight != 0;
  p.m = a.x->shape[turned_x ? 1 : 0], p.k = a.x->shape[turned_x ? 0 : 1];
  p.n = w.shape[turned ? 0 : 1];
  const std::int64_t wanted[] = {turned ? p.n : p.k, turned ? p.k : p.n};
  require_shape(w, "weight", 2, wanted);
  p.groups = groups_of(a).require(p.k);
  const std::int64_t shape[] = {p.groups, p.m, p.n};
  outputs.set(a.y, a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : a.x->dtype, 3, shape);
}

void infer(const velo_grouped_matmul_args& a, grouped_problem& p, output_shapes& outputs) {
  require_rank(*a.x, "x", 2, 2);
  p.type = type_of(a.x->dtype);
  cuts_depth(a) ? infer_depth(a, p, outputs) : infer_rows(a, p, outputs);
  require_below_2_31(std::max(p.n, p.k), "weight");
}

// x and dy by rows, which give grad[e] += x_e^T dy_e.
void infer_add(const velo_grouped_matmul_add_fp32_args& a, grouped_problem& p,
               output_shapes& outputs) {
  require_rank(*a.x, "x", 2, 2);
  require_dtype(*a.dy, "dy", a.x->dtype);
  require_rank(*a.dy, "dy", 2, 2);
  p.k = a.x->shape[0], p.m = a.x->shape[1], p.n = a.dy->shape[1], p.type = type_of(a.x->dtype);
  const std::int64_t rows[] = {p.k, p.n};
  require_shape(*a.dy, "dy", 2, rows);
  p.groups = groups_of(a).require(p.k);
  require_below_2_31(std::max(p.n, p.k), "dy");
  const std::int64_t shape[] = {p.groups, p.m, p.n};
  if (a.grad == nullptr || a.grad->ndim != 2) return outputs.set(a.grad, f32, 3, shape);
  if (!countable(3, shape)) refuse_sizes(3, shape, "args.x.shape");
  const std::int64_t flat[] = {p.groups * p.m, p.n};
  outputs.set(a.grad, f32, 2, flat);
}

// dy[m][n] with x[m][k] and weight[e][k][n], each needed by one of the results.
void infer_backward(const velo_grouped_matmul_backward_args& a, grouped_problem& p,
                    output_shapes& outputs) {
  const bool turned = a.transpose_weight != 0;
  require_rank(*a.dy, "dy", 2, 2);
  p.m = a.dy->shape[0], p.n = a.dy->shape[1], p.k = 0, p.type = type_of(a.dy->dtype);
  p.groups = groups_of(a).require(p.m);
  if (a.dx != nullptr) require_given(a.weight, "weight");
  if (a.dweight != nullptr) require_given(a.x, "x");
  if (a.weight != nullptr) {
    // dy[m, n] by the transposed weights, whose columns are k.
    const weight_operand back{a.weight, nullptr, !turned, "weight", "transpose_weight"};
    p.k = back.require_groups(p.groups, a.dy->dtype, p.n);
    const std::int64_t shape[] = {p.m, p.k};
    outputs.set(a.dx, a.dy->dtype, 2, shape);
  }
  if (a.x != nullptr) {
    require_rank(*a.x, "x", 2, 2);
    require_dtype(*a.x, "x", a.dy->dtype);
    if (a.weight == nullptr) p.k = a.x->shape[1];
    const std::int64_t wanted[] = {p.m, p.k};
    require_shape(*a.x, "x", 2, wanted);
    const std::int64_t shape[] = {p.groups, turned ? p.n : p.k, turned ? p.k : p.n};
    outputs.set(a.dweight, a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : a.dy->dtype, 3, shape);
  }
  require_below_2_31(std::max({p.m, p.n, p.k}), "dy");
  const std::int64_t shape[] = {p.groups, p.n};
  outputs.set(a.dbias, f32, 2, shape);
}

// ---- the products ----

// A matrix whose elements from `first` on belong to a group.
const void* part_of(const velo_tensor* t, std::int64_t first) {
  return data<const char>(t) + bytes_of(t->dtype, first);
}
void* part_of_output(const velo_tensor* t, std::int64_t first) {
  return data<char>(t) + bytes_of(t->dtype, first);
}

gemm_problem sized(const grouped_problem& p, std::int64_t m, std::int64_t n, std::int64_t k) {
  gemm_problem one;
  one.type = p.type;
  one.m = m, one.n = n, one.k = k;
  one.ldc = n;
  return one;
}

// Rows [first, first + m) of x by the group's weight, which may come packed.
gemm_problem rows_product(const grouped_problem& p, const velo_tensor* x, const velo_tensor* weight,
                          bool turned, const velo_tensor* y, std::int64_t group,
                          const std::int64_t* bounds, std::int64_t n, std::int64_t k) {
  const std::int64_t first = bounds[group];
  gemm_problem one = sized(p, bounds[group + 1] - first, n, k);
  one.a = part_of(x, first * k), one.lda = k;
  if (weight != nullptr) one.b = part_of(weight, group * k * n), one.ldb = turned ? k : n;
  one.transpose_b = turned;
  one.c = part_of_output(y, first * n), one.c_type = type_of(y->dtype);
  return one;
}

// left[depth][m]^T right[depth][n] over the group's depth, stored behind those of other groups.
gemm_problem depth_product(const grouped_problem& p, const velo_tensor* left,
                           const velo_tensor* right, const velo_tensor* y, std::int64_t group,
                           const std::int64_t* bounds, std::int64_t m, std::int64_t n) {
  const std::int64_t first = bounds[group];
  gemm_problem one = sized(p, m, n, bounds[group + 1] - first);
  one.a = part_of(left, first * m), one.lda = m, one.transpose_a = true;
  one.b = part_of(right, first * n), one.ldb = n;
  one.c = part_of_output(y, group * m * n), one.c_type = type_of(y->dtype);
  return one;
}

void run(const velo_grouped_matmul_args& a, const grouped_problem& p, const gemm_kernels& kernels,
         core::execution& on) {
  const bool depth = cuts_depth(a), turned = a.transpose_weight != 0;
  const std::int64_t* bounds = groups_of(a).bounds(depth ? p.k : p.m, on.scratch);
  const float* bias = a.bias == nullptr ? nullptr : widened(*a.bias, on);
  const weight_in_use weight(weight_of(a));
  const auto* packs = weight.matrices<packed_matrix>(p.groups, on.scratch);
  product_list products(p.groups, on.scratch);
  for (std::int64_t e = 0; e < p.groups; ++e) {
    gemm_problem one = depth ? depth_product(p, a.x, a.weight, a.y, e, bounds, p.m, p.n)
                             : rows_product(p, a.x, a.weight, turned, a.y, e, bounds, p.n, p.k);
    if (depth && a.transpose_x == 0) {
      one.a = part_of(a.x, bounds[e]), one.lda = p.k, one.transpose_a = false;
    }
    if (depth && turned) {
      one.b = part_of(a.weight, bounds[e]), one.ldb = p.k, one.transpose_b = true;
    }
    if (packs != nullptr) one.packed_b = packs + e;
    one.epilogue.bias = bias == nullptr ? nullptr : bias + e * p.n;
    one.epilogue.accumulate = a.accumulate != 0;
    products.add(one);
  }
  products.multiply(kernels, on);
}

void run_add(const velo_grouped_matmul_add_fp32_args& a, const grouped_problem& p,
             const gemm_kernels& kernels, core::execution& on) {
  const std::int64_t* bounds = groups_of(a).bounds(p.k, on.scratch);
  product_list products(p.groups, on.scratch);
  for (std::int64_t e = 0; e < p.groups; ++e) {
    if (bounds[e] == bounds[e + 1]) continue;
    gemm_problem one = depth_product(p, a.x, a.dy, a.grad, e, bounds, p.m, p.n);
    one.epilogue.accumulate = true;
    products.add(one);
  }
  products.multiply(kernels, on);
}

void run_backward(const velo_grouped_matmul_backward_args& a, const grouped_problem& p,
                  const gemm_kernels& kernels, core::execution& on) {
  const std::int64_t* bounds = groups_of(a).bounds(p.m, on.scratch);
  const bool turned = a.transpose_weight != 0, accumulate = a.accumulate != 0;
  const void* ones = a.dbias == nullptr ? nullptr : take_ones(p.type, p.m, on.scratch);
  product_list products(3 * p.groups, on.scratch);
  for (std::int64_t e = 0; e < p.groups; ++e) {
    if (a.dx != nullptr)
      products.add(rows_product(p, a.dy, a.weight, !turned, a.dx, e, bounds, p.k, p.n));
    if (a.dweight != nullptr) {
      gemm_problem one = turned ? depth_product(p, a.dy, a.x, a.dweight, e, bounds, p.n, p.k)
                                : depth_product(p, a.x, a.dy, a.dweight, e, bounds, p.k, p.n);
      one.epilogue.accumulate = accumulate;
      products.add(one);
    }
    if (a.dbias != nullptr) {
      gemm_problem one = column_sums(p.type, ones, part_of(a.dy, bounds[e] * p.n),
                                     bounds[e + 1] - bounds[e], p.n, p.n);
      one.c = part_of_output(a.dbias, e * p.n);
      one.epilogue.accumulate = accumulate;
      products.add(one);
    }
  }
  products.multiply(kernels, on);
}

template <class Args>
const char* reject(const Args&, const grouped_problem& p, const kernel_entry& kernel) {
  return reject_product(kernel, p.type);
}
const char* reject_rows(const velo_grouped_matmul_args& a, const grouped_problem& p,
                        const kernel_entry& kernel) {
  if (const char* why = reject_product(kernel, p.type)) return why;
  return weight_of(a).reject(kernel);
}

double flops_of(const grouped_problem& p) {
  return 2 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

void cost_of(const velo_grouped_matmul_args& a, const grouped_problem& p, op_cost& cost) {
  cost.multiply(flops_of(p), flops_of(p), a.x->dtype);
  cost.bytes_read += weight_of(a).packed_bytes(a.x->dtype, p.groups, p.k, p.n);
  if (a.accumulate == 0) cost.bytes_read -= cost.bytes_written;  // y is read to add to it alone
}
void cost_of_add(const velo_grouped_matmul_add_fp32_args& a, const grouped_problem& p,
                 op_cost& cost) {
  cost.multiply(flops_of(p), flops_of(p), a.x->dtype);
}
void cost_of_backward(const velo_grouped_matmul_backward_args& a, const grouped_problem& p,
                      op_cost& cost) {
  const int products = (a.dx != nullptr ? 1 : 0) + (a.dweight != nullptr ? 1 : 0);
  cost.multiply(products * flops_of(p), products * flops_of(p), a.dy->dtype);
  if (a.accumulate != 0) cost.bytes_read += bytes_of(a.dweight) + bytes_of(a.dbias);
}

}  // namespace

extern const operator_def grouped_matmul_operator =
    with_cost<cost_of>(define<infer, run, reject_rows>(gemm_kernel_list));
extern const operator_def grouped_matmul_add_fp32_operator = with_cost<cost_of_add>(
    define<infer_add, run_add, reject<velo_grouped_matmul_add_fp32_args>>(gemm_kernel_list));
extern const operator_def grouped_matmul_backward_operator = with_cost<cost_of_backward>(
    define<infer_backward, run_backward, reject<velo_grouped_matmul_backward_args>>(
        gemm_kernel_list));

}  // namespace velo::ops
