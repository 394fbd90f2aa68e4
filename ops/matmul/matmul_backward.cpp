// matmul_backward and matmul_add_backward as operators: the gradients of both factors and of the
// bias, each a product, and of a residual that was broadcast.
//
// With op(a)[m][k] op(b)[k][n] = c: d op(a) = dc op(b)^T and d op(b) = op(a)^T dc; a gradient is
// laid out as its factor, so a transposed one swaps the sides of its product. Every combination is
// one call of the engine without a copy. The bias' gradient is the sum of dc over rows, by ones.
#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"
#include "core/simd/scalar.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/broadcast.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/definition.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {
namespace {

// A matrix as a factor: op(x)[rows][columns] of a stored tensor.
struct factor {
  const void* data = nullptr;
  std::int64_t ld = 0;
  bool transposed = false;

  factor turned() const { return {data, ld, !transposed}; }
};

struct backward_problem {
  element_type type;
  std::int64_t m, n, k;
  std::int64_t ldc, lda, ldb;     // of dc, a and b
  std::int64_t ld_da, ld_db;      // of the results
  bool transpose_a, transpose_b;  // as in the forward call
  broadcast residual;
};

// What matmul_backward has and matmul_add_backward has not.
bool accumulates(const velo_matmul_backward_args& a) {
  return a.accumulate != 0;
}
bool accumulates(const velo_matmul_add_backward_args&) {
  return false;
}
velo_dtype dtype_of_db(const velo_matmul_backward_args& a) {
  return a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : a.dc->dtype;
}
velo_dtype dtype_of_db(const velo_matmul_add_backward_args& a) {
  return a.dc->dtype;
}

void infer_residual(const velo_matmul_backward_args&, backward_problem&, output_shapes&) {}
void infer_residual(const velo_matmul_add_backward_args& a, backward_problem& p,
                    output_shapes& outputs) {
  if (a.dadd != nullptr) require_given(a.add, "add");
  if (a.add == nullptr) return;
  require_dtype(*a.add, "add", a.dc->dtype);
  p.residual = require_broadcast(*a.add, "add", a.dc->ndim, a.dc->shape);
  outputs.like(a.dadd, *a.add);
}

// The inner sizes of op(a): m comes from dc.
template <class Args>
void infer_a(const Args& a, backward_problem& p, output_shapes& outputs) {
  const bool turned = p.transpose_a;
  std::int64_t sizes[max_rank];
  for (int i = 0; i < a.dc->ndim; ++i) sizes[i] = a.dc->shape[i];
  sizes[a.dc->ndim - 1] = p.k;
  if (turned) sizes[0] = p.k, sizes[1] = p.m;
  if (a.a != nullptr) {
    require_dtype(*a.a, "a", a.dc->dtype);
    require_shape(*a.a, "a", a.dc->ndim, sizes);
    p.lda = fold(*a.a, "a").ld;
  }
  if (a.b != nullptr) outputs.set(a.da, a.dc->dtype, a.dc->ndim, sizes);
  if (a.da != nullptr) p.ld_da = fold(*a.da, "da").ld;
}

template <class Args>
void infer_b(const Args& a, backward_problem& p, output_shapes& outputs) {
  const std::int64_t sizes[] = {p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n};
  if (a.b != nullptr) {
    require_dtype(*a.b, "b", a.dc->dtype);
    require_shape(*a.b, "b", 2, sizes);
    p.ldb = fold(*a.b, "b").ld;
  }
  if (a.a != nullptr) outputs.set(a.db, dtype_of_db(a), 2, sizes);
  if (a.db != nullptr) p.ld_db = fold(*a.db, "db").ld;
}

template <class Args>
void infer(const Args& a, backward_problem& p, output_shapes& outputs) {
  p.transpose_a = a.transpose_a != 0, p.transpose_b = a.transpose_b != 0;
  require_rank(*a.dc, "dc", 2, p.transpose_a ? 2 : max_rank);
  if (a.da != nullptr) require_given(a.b, "b");
  if (a.db != nullptr) require_given(a.a, "a");
  const folded dc = fold(*a.dc, "dc");
  p.type = type_of(a.dc->dtype);
  p.m = dc.rows, p.n = dc.columns, p.k = 0, p.ldc = dc.ld;
  p.lda = p.ldb = p.ld_da = p.ld_db = 0;
  if (a.b != nullptr) {
    require_rank(*a.b, "b", 2, 2);
    p.k = a.b->shape[p.transpose_b ? 1 : 0];
  } else if (a.a != nullptr) {
    require_rank(*a.a, "a", a.dc->ndim, a.dc->ndim);
    p.k = a.a->shape[p.transpose_a ? 0 : a.a->ndim - 1];
  }
  infer_a(a, p, outputs);
  infer_b(a, p, outputs);
  require_below_2_31(std::max({p.m, p.n, p.k}), "dc");
  outputs.set(a.dbias, f32, 1, &p.n);
  infer_residual(a, p, outputs);
}

gemm_problem product_of(const backward_problem& p, const factor& left, const factor& right,
                        std::int64_t m, std::int64_t n, std::int64_t k) {
  gemm_problem one;
  one.type = p.type;
  one.m = m, one.n = n, one.k = k;
  one.a = left.data, one.lda = left.ld, one.transpose_a = left.transposed;
  one.b = right.data, one.ldb = right.ld, one.transpose_b = right.transposed;
  return one;
}

void place(gemm_problem& p, const velo_tensor& c, std::int64_t ld, bool accumulate) {
  p.c = data<void>(&c), p.ldc = ld, p.c_type = type_of(c.dtype);
  p.epilogue.accumulate = accumulate;
}

// Sums columns [first, end) of dc over the rows that shared one of the residual, or all of them
// where it has one column, in double.
template <class T>
void sum_columns(const velo_matmul_add_backward_args& a, const backward_problem& p,
                 std::int64_t first, std::int64_t end, double* sums) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    const T* dc = data<const T>(a.dc) + i * p.ldc;
    double* to = sums + p.residual.row(i);
    for (std::int64_t j = first; j < end; ++j)
      to[p.residual.one_column ? 0 : j] += static_cast<double>(simd::to_float(dc[j]));
  }
}

// Tasks are parts of the columns, so no sum depends on their number; a residual of one column,
// which they would share, is one task.
template <class T>
void sum_broadcast(const velo_matmul_add_backward_args& a, const backward_problem& p,
                   core::execution& on) {
  constexpr std::int64_t task_columns = 256;
  const std::int64_t count = numel(*a.dadd);
  T* dadd = data<T>(a.dadd);
  if (count == p.m * p.n) {
    return on.threads(p.m, [&](std::int64_t i, int) {
      std::memcpy(dadd + i * p.n, data<const T>(a.dc) + i * p.ldc,
                  static_cast<std::size_t>(p.n) * sizeof(T));
    });
  }
  auto* sums = on.scratch.take<double>(static_cast<std::size_t>(count));
  std::fill(sums, sums + count, 0.0);
  const std::int64_t step = p.residual.one_column ? p.n : task_columns;
  on.threads(core::ceil_div(p.n, std::max<std::int64_t>(step, 1)), [&](std::int64_t task, int) {
    sum_columns<T>(a, p, task * step, std::min((task + 1) * step, p.n), sums);
  });
  for (std::int64_t i = 0; i < count; ++i) simd::assign(dadd[i], sums[i]);
}

void run_residual(const velo_matmul_backward_args&, const backward_problem&, core::execution&) {}
void run_residual(const velo_matmul_add_backward_args& a, const backward_problem& p,
                  core::execution& on) {
  if (a.dadd == nullptr || numel(*a.dadd) == 0) return;
  with_element_type(a.dc->dtype, [&](auto t) { sum_broadcast<decltype(t)>(a, p, on); });
}

template <class Args>
void run(const Args& a, const backward_problem& p, const gemm_kernels& kernels,
         core::execution& on) {
  const factor dc{data<const void>(a.dc), p.ldc, false};
  const factor left{data<const void>(a.a), p.lda, p.transpose_a};
  const factor right{data<const void>(a.b), p.ldb, p.transpose_b};
  const bool accumulate = accumulates(a);
  if (a.da != nullptr && numel(*a.da) != 0) {
    gemm_problem one = p.transpose_a ? product_of(p, right, dc.turned(), p.k, p.m, p.n)
                                     : product_of(p, dc, right.turned(), p.m, p.k, p.n);
    place(one, *a.da, p.ld_da, false);
    multiply(one, nullptr, kernels, on);
  }
  if (a.db != nullptr && numel(*a.db) != 0) {
    gemm_problem one = p.transpose_b ? product_of(p, dc.turned(), left, p.n, p.k, p.m)
                                     : product_of(p, left.turned(), dc, p.k, p.n, p.m);
    place(one, *a.db, p.ld_db, accumulate);
    multiply(one, nullptr, kernels, on);
  }
  if (a.dbias != nullptr && p.n != 0) {
    gemm_problem one = column_sums(p.type, take_ones(p.type, p.m, on.scratch),
                                   data<const void>(a.dc), p.m, p.n, p.ldc);
    place(one, *a.dbias, p.n, accumulate);
    multiply(one, nullptr, kernels, on);
  }
  run_residual(a, p, on);
}

template <class Args>
const char* reject(const Args&, const backward_problem& p, const kernel_entry& kernel) {
  return reject_product(kernel, p.type);
}

template <class Args>
void cost_of(const Args& a, const backward_problem& p, op_cost& cost) {
  const int products = (a.da != nullptr ? 1 : 0) + (a.db != nullptr ? 1 : 0);
  const double flops = products * 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                       static_cast<double>(p.k);
  cost.multiply(flops, flops, a.dc->dtype);
  if (accumulates(a)) cost.bytes_read += bytes_of(a.db) + bytes_of(a.dbias);
}

}  // namespace

template <class Args>
constexpr operator_def definition =
    with_cost<cost_of<Args>>(define<infer<Args>, run<Args>, reject<Args>>(gemm_kernel_list));

extern const operator_def matmul_backward_operator = definition<velo_matmul_backward_args>;
extern const operator_def matmul_add_backward_operator = definition<velo_matmul_add_backward_args>;

}  // namespace velo::ops
