// The shapes of a product's gradients, and the calls of the engine.
#include "ops/matmul/product_gradients.hpp"

#include <algorithm>

#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/tensor.hpp"

namespace velo::ops {
namespace {

// A matrix as a factor: op(x)[rows][columns] of a stored tensor.
struct factor {
  const void* data = nullptr;
  std::int64_t ld = 0;
  bool transposed = false;

  factor turned() const { return {data, ld, !transposed}; }
};

// The inner sizes of op(a): m comes from dc.
void infer_a(const result_gradient& dc, const factor_fields& a, bool needed, product_gradients& p,
             output_shapes& outputs) {
  std::int64_t sizes[max_rank];
  for (int i = 0; i < dc.rank; ++i) sizes[i] = dc.sizes[i];
  sizes[dc.rank - 1] = p.k;
  if (p.transpose_a) sizes[0] = p.k, sizes[1] = p.m;
  if (a.factor != nullptr) {
    require_dtype(*a.factor, a.name, dc.dtype);
    require_shape(*a.factor, a.name, dc.rank, sizes);
    p.lda = fold(*a.factor, a.name).ld;
  }
  if (needed) outputs.set(a.gradient, dc.dtype, dc.rank, sizes);
  if (a.gradient != nullptr) p.ld_da = fold(*a.gradient, a.gradient_name).ld;
}

void infer_b(const result_gradient& dc, const factor_fields& b, bool needed, velo_dtype db_dtype,
             product_gradients& p, output_shapes& outputs) {
  const std::int64_t sizes[] = {p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n};
  if (b.factor != nullptr) {
    require_dtype(*b.factor, b.name, dc.dtype);
    require_shape(*b.factor, b.name, 2, sizes);
    p.ldb = fold(*b.factor, b.name).ld;
  }
  if (needed) outputs.set(b.gradient, db_dtype, 2, sizes);
  if (b.gradient != nullptr) p.ld_db = fold(*b.gradient, b.gradient_name).ld;
}

gemm_problem product_of(const product_gradients& p, const factor& left, const factor& right,
                        std::int64_t m, std::int64_t n, std::int64_t k) {
  gemm_problem one;
  one.type = p.type;
  one.m = m, one.n = n, one.k = k;
  one.a = left.data, one.lda = left.ld, one.transpose_a = left.transposed;
  one.b = right.data, one.ldb = right.ld, one.transpose_b = right.transposed;
  return one;
}

void place(gemm_problem& p, void* c, element_type type, std::int64_t ld, bool accumulate) {
  p.c = c, p.ldc = ld, p.c_type = type;
  p.epilogue.accumulate = accumulate;
}

}  // namespace

void infer_gradients(const result_gradient& dc, const factor_fields& a, const factor_fields& b,
                     velo_dtype db_dtype, product_gradients& p, output_shapes& outputs) {
  if (a.gradient != nullptr) require_given(b.factor, b.name);
  if (b.gradient != nullptr) require_given(a.factor, a.name);
  p.type = type_of(dc.dtype), p.db_type = type_of(db_dtype);
  p.m = product(dc.sizes, dc.rank - 1), p.n = dc.sizes[dc.rank - 1], p.k = 0, p.ldc = dc.ld;
  p.lda = p.ldb = p.ld_da = p.ld_db = 0;
  if (b.factor != nullptr) {
    require_rank(*b.factor, b.name, 2, 2);
    p.k = b.factor->shape[p.transpose_b ? 1 : 0];
  } else if (a.factor != nullptr) {
    require_rank(*a.factor, a.name, dc.rank, dc.rank);
    p.k = a.factor->shape[p.transpose_a ? 0 : dc.rank - 1];
  }
  infer_a(dc, a, b.factor != nullptr, p, outputs);
  infer_b(dc, b, a.factor != nullptr, db_dtype, p, outputs);
}

void multiply_gradients(const product_gradients& p, const gradient_matrices& x,
                        const gemm_kernels& kernels, core::execution& on) {
  const factor dc{x.dc, p.ldc, false};
  const factor left{x.a, p.lda, p.transpose_a}, right{x.b, p.ldb, p.transpose_b};
  if (x.da != nullptr && p.m != 0 && p.k != 0) {
    const core::scratch_scope scope(on.scratch);
    gemm_problem one = p.transpose_a ? product_of(p, right, dc.turned(), p.k, p.m, p.n)
                                     : product_of(p, dc, right.turned(), p.m, p.k, p.n);
    place(one, x.da, p.type, p.ld_da, false);
    multiply(one, kernels, on);
  }
  if (x.db != nullptr && p.k != 0 && p.n != 0) {
    const core::scratch_scope scope(on.scratch);
    gemm_problem one = p.transpose_b ? product_of(p, dc.turned(), left, p.n, p.k, p.m)
                                     : product_of(p, left.turned(), dc, p.k, p.n, p.m);
    place(one, x.db, p.db_type, p.ld_db, x.accumulate);
    multiply(one, kernels, on);
  }
  if (x.dbias != nullptr && p.n != 0) {
    const core::scratch_scope scope(on.scratch);
    gemm_problem one =
        column_sums(p.type, take_ones(p.type, p.m, on.scratch), x.dc, p.m, p.n, p.ldc);
    place(one, x.dbias, element_type::f32, p.n, x.accumulate);
    multiply(one, kernels, on);
  }
}

}  // namespace velo::ops
