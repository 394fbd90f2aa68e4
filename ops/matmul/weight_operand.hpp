// The right side of a product as an operator gets it: a matrix, plain or transposed, or one for
// each group of rows, or a pack in its place.
//
// A pack is a handle, so it is resolved again when the call runs: it may have been destroyed since
// the call was queued. While the call runs, `weight_in_use` refuses its destruction by functions of
// the host.
#pragma once

#include <optional>

#include "core/handle/inside.hpp"
#include "core/host/arena.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/operator/kernels.hpp"
#include "ops/operator/tensor.hpp"
#include "ops/quant/packed_integers.hpp"
#include "velo/types.h"

namespace velo::ops {

class weight_pack;

struct weight_operand {
  const velo_tensor* matrix;
  velo_pack packed;
  bool transposed;
  const char *field, *transpose_field;

  // Refuses what does not fit a left side of `dtype` and p.k columns; sets n, ldb and transpose_b.
  void require(velo_dtype dtype, gemm_problem& p) const;
  // The same of a matrix for each of `groups`: returns its columns.
  std::int64_t require_groups(std::int64_t groups, velo_dtype dtype, std::int64_t k) const;
  void require_matrix() const;  // refuses NULL
  // The pack, which must stand in place of the matrix and be one with weight_only or without.
  const weight_pack& require_pack(bool weight_only) const;
  // Why a kernel cannot read it, or nullptr.
  const char* reject(const kernel_entry& kernel) const;
  const char* reject_integers(const kernel_entry& kernel) const;
  // What its bytes add to a call's cost; a matrix is a field and is counted already.
  double packed_bytes(velo_dtype dtype, std::int64_t groups, std::int64_t k, std::int64_t n) const;
};

// groups: the count that a pack of experts must have; without a value it must hold one matrix.
void require_count(const weight_pack& pack, std::optional<std::int64_t> groups);

// The product x[.., k] by a weight, with a bias for each column, but for its pointers, C's and ldc.
void require_product(const velo_tensor& x, const weight_operand& weight, const velo_tensor* bias,
                     gemm_problem& p);

class weight_in_use {
 public:
  explicit weight_in_use(const weight_operand& weight);

  // The form of a pack's only matrix, or null where the weight is plain.
  const packed_matrix* matrix() const { return matrix_ ? &*matrix_ : nullptr; }
  // The forms of the matrices of all groups, or null where the weight is plain.
  template <class Form>
  const Form* matrices(std::int64_t groups, core::arena& scratch) const;

 private:
  const weight_pack* pack_ = nullptr;
  std::optional<packed_matrix> matrix_;
  std::optional<core::inside_scope> here_;
};

}  // namespace velo::ops
