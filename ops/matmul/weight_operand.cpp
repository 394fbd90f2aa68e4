// The checks of matrices and of a pack, and the life of a pack.
#include "ops/matmul/weight_operand.hpp"

#include <algorithm>
#include <new>

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/group_list.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/matmul/pack.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/output_shapes.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

// The pack behind a handle that was checked before.
const weight_pack& object_of(velo_pack pack) {
  return core::object_of<weight_pack>(pack);
}

core::text name_of(std::int64_t count) {
  return count == 0 ? text("without a count") : core::concat("with a count of ", count);
}

// Returns the pack's columns.
std::int64_t columns_of_pack(const weight_operand& w, velo_dtype dtype,
                             std::optional<std::int64_t> groups, std::int64_t k) {
  const weight_pack& pack = w.require_pack(false);
  if (pack.dtype() != dtype) {
    fail(VELO_ERR_DTYPE, "args.packed", text("a pack of %s", dtype_name(dtype).buffer),
         text("one of %s", dtype_name(pack.dtype()).buffer));
  }
  require_count(pack, groups);
  if (pack.k() != k) {
    fail(VELO_ERR_SHAPE, "args.packed", core::concat("a pack of ", k, " rows"),
         core::concat("one of ", pack.k()));
  }
  return pack.n();
}

constexpr const char* another_form = "the pack has the form of another instruction set";

}  // namespace

void weight_operand::require_matrix() const {
  if (matrix == nullptr) fail(VELO_ERR_NULL, text("args.%s", field), "a tensor, or packed", "NULL");
}

const weight_pack& weight_operand::require_pack(bool weight_only) const {
  const weight_pack& pack = object_of(packed);
  if (matrix != nullptr) {
    fail(VELO_ERR_ARGUMENT, text("args.%s", field), "NULL beside packed", "a tensor");
  }
  if (transposed) {
    fail(VELO_ERR_ARGUMENT, text("args.%s", transpose_field), "0 beside packed", "1");
  }
  if (pack.weight_only() != weight_only) {
    fail(VELO_ERR_ARGUMENT, "args.packed",
         weight_only ? "a pack with weight_only" : "a pack without weight_only",
         weight_only ? "one without" : "one with it");
  }
  return pack;
}

void require_count(const weight_pack& pack, std::optional<std::int64_t> groups) {
  // A call without groups fits any pack of experts.
  const bool fits =
      groups ? pack.count() != 0 && (*groups == 0 || pack.count() == *groups) : pack.count() == 0;
  if (fits) return;
  const text wanted = groups && *groups == 0 ? text("with a count") : name_of(groups.value_or(0));
  fail(VELO_ERR_SHAPE, "args.packed", text("a pack %s", wanted.buffer),
       text("one %s", name_of(pack.count()).buffer));
}

void weight_operand::require(velo_dtype dtype, gemm_problem& p) const {
  p.transpose_b = transposed;
  if (packed != nullptr) {
    p.n = columns_of_pack(*this, dtype, std::nullopt, p.k);
    p.ldb = 0;
    return;
  }
  require_matrix();
  require_rank(*matrix, field, 2, 2);
  require_dtype(*matrix, field, dtype);
  p.n = matrix->shape[transposed ? 0 : 1];
  const std::int64_t wanted[] = {transposed ? p.n : p.k, transposed ? p.k : p.n};
  require_shape(*matrix, field, 2, wanted);
  p.ldb = fold(*matrix, field).ld;
}

std::int64_t weight_operand::require_groups(std::int64_t groups, velo_dtype dtype,
                                            std::int64_t k) const {
  if (packed != nullptr) return columns_of_pack(*this, dtype, groups, k);
  require_matrix();
  require_rank(*matrix, field, 3, 3);
  require_dtype(*matrix, field, dtype);
  require_a_matrix_each(groups, matrix->shape[0], field);
  const std::int64_t n = matrix->shape[transposed ? 1 : 2];
  const std::int64_t wanted[] = {groups, transposed ? n : k, transposed ? k : n};
  require_shape(*matrix, field, 3, wanted);
  return n;
}

const char* weight_operand::reject(const kernel_entry& kernel) const {
  if (packed == nullptr || static_cast<const gemm_kernels*>(kernel.kernels)->plain())
    return nullptr;
  return object_of(packed).serves<packed_matrix>(gemm_target(kernel.isa)) ? nullptr : another_form;
}

const char* weight_operand::reject_integers(const kernel_entry& kernel) const {
  const auto& kernels = *static_cast<const integer_product_kernels*>(kernel.kernels);
  if (packed == nullptr || kernels.plain()) return nullptr;
  return object_of(packed).serves<packed_integers>(kernels) ? nullptr : another_form;
}

double weight_operand::packed_bytes(velo_dtype dtype, std::int64_t groups, std::int64_t k,
                                    std::int64_t n) const {
  return packed == nullptr ? 0 : bytes_of_rows(groups * k, n, dtype);
}

void require_product(const velo_tensor& x, const weight_operand& weight, const velo_tensor* bias,
                     gemm_problem& p) {
  require_rank(x, "x", 2);
  const folded left = fold(x, "x");
  p.m = left.rows, p.k = left.columns, p.lda = left.ld;
  weight.require(x.dtype, p);
  if (bias != nullptr) {
    require_shape(*bias, "bias", 1, &p.n);
    require_f32_or(*bias, "bias", x.dtype);
  }
  require_below_2_31(std::max(p.n, p.k), weight.matrix != nullptr ? weight.field : "x");
  p.type = p.c_type = type_of(x.dtype);
}

weight_in_use::weight_in_use(const weight_operand& weight) {
  if (weight.packed == nullptr) return;
  pack_ = &core::resolve<weight_pack>(weight.packed, "args.packed");
  if (pack_->dtype() != i8) matrix_ = pack_->matrix<packed_matrix>(0);
  here_.emplace(weight.packed, core::part::given);
}

template <class Form>
const Form* weight_in_use::matrices(std::int64_t groups, core::arena& scratch) const {
  if (pack_ == nullptr) return nullptr;
  auto* all = scratch.take<Form>(static_cast<std::size_t>(groups));
  for (std::int64_t e = 0; e < groups; ++e) new (all + e) Form(pack_->matrix<Form>(e));
  return all;
}

template const packed_matrix* weight_in_use::matrices(std::int64_t, core::arena&) const;
template const packed_integers* weight_in_use::matrices(std::int64_t, core::arena&) const;

}  // namespace velo::ops
