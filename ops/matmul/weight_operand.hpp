// The right side of a product as an operator gets it: a matrix, plain or transposed, or a pack in
// its place.
//
// A pack is a handle, so it is resolved again when the call runs: it may have been destroyed since
// the call was queued. While the call runs, `weight_in_use` refuses its destruction by functions of
// the host.
#pragma once

#include <optional>

#include "core/handle/inside.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/operator/kernels.hpp"
#include "ops/operator/tensor.hpp"
#include "velo/types.h"

namespace velo::ops {

struct weight_operand {
  const velo_tensor* matrix;
  velo_pack packed;
  bool transposed;
  const char *field, *transpose_field;

  // Refuses what does not fit a left side of `dtype` and p.k columns; sets n, ldb and transpose_b.
  void require(velo_dtype dtype, gemm_problem& p) const;
  // Why a kernel cannot read it, or nullptr.
  const char* reject(const kernel_entry& kernel) const;
  // What its bytes add to a call's cost; a matrix is a field and is counted already.
  double packed_bytes(velo_dtype dtype, const gemm_problem& p) const;
};

// The product x[.., k] by a weight, with a bias for each column, but for its pointers, C's and ldc.
void require_product(const velo_tensor& x, const weight_operand& weight, const velo_tensor* bias,
                     gemm_problem& p);

class weight_in_use {
 public:
  explicit weight_in_use(const weight_operand& weight);
  const packed_matrix* pack() const { return pack_; }

 private:
  const packed_matrix* pack_ = nullptr;
  std::optional<core::inside_scope> here_;
};

}  // namespace velo::ops
