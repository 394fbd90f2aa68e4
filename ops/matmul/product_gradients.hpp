// The gradients of a product that its operators share: of both factors and of a bias for each
// column, each a product.
//
// With op(a)[m][k] op(b)[k][n] = c: d op(a) = dc op(b)^T and d op(b) = op(a)^T dc; a gradient is
// laid out as its factor, so a transposed one swaps the sides of its product. Every combination is
// one call of the engine without a copy. The bias' gradient is the sum of dc over rows, by ones.
// Cost: 2 m n k FLOP for each factor.
#pragma once

#include "ops/matmul/operands.hpp"
#include "ops/operator/output_shapes.hpp"
#include "velo/ops_matmul.h"

namespace velo::ops {

struct product_gradients {
  element_type type, db_type;
  std::int64_t m, n, k;
  std::int64_t ldc, lda, ldb;     // of dc, a and b
  std::int64_t ld_da, ld_db;      // of the results
  bool transpose_a, transpose_b;  // as in the forward call

  // Of so many products of the forward call's size.
  double flops(int products) const {
    return products * 2.0 * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

// A factor and its gradient, as fields of a call; where it is left out it has no gradient.
struct factor_fields {
  const velo_tensor* factor;
  output_shapes::output gradient;  // a field of the call
  const char *name, *gradient_name;
};

// The gradient of c as its shape, its dtype and the elements between its rows.
struct result_gradient {
  int rank;
  const std::int64_t* sizes;
  velo_dtype dtype;
  std::int64_t ld;
};

// Checks the factors that are given against dc and each other, and states their gradients.
void infer_gradients(const result_gradient& dc, const factor_fields& a, const factor_fields& b,
                     velo_dtype db_dtype, product_gradients& p, output_shapes& outputs);

// The matrices of a run; results that are null are left out.
struct gradient_matrices {
  const void *dc, *a, *b;
  void *da, *db;
  float* dbias;
  bool accumulate;  // to db and dbias
};
void multiply_gradients(const product_gradients& p, const gradient_matrices& x,
                        const gemm_kernels& kernels, core::execution& on);

template <class Args>
velo_dtype product_dtype(const Args& a, velo_dtype like) {
  return a.dtype == VELO_PRODUCT_DTYPE_FLOAT32 ? f32 : like;
}

}  // namespace velo::ops
