// The checks of a matrix and of a pack, and the life of a pack.
#include "ops/matmul/weight_operand.hpp"

#include <algorithm>

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/operands.hpp"
#include "ops/matmul/pack.hpp"
#include "ops/operator/cost.hpp"
#include "ops/operator/output_shapes.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

// The matrix behind a handle that was checked before.
const packed_matrix& matrix_of(velo_pack pack) {
  return core::object_of<weight_pack>(pack).matrix();
}

void require_pack(const weight_operand& w, velo_dtype dtype, gemm_problem& p) {
  const packed_matrix& pack = matrix_of(w.packed);
  if (w.matrix != nullptr) {
    fail(VELO_ERR_ARGUMENT, text("args.%s", w.field), "NULL beside packed", "a tensor");
  }
  if (w.transposed) {
    fail(VELO_ERR_ARGUMENT, text("args.%s", w.transpose_field), "0 beside packed", "1");
  }
  if (pack.type() != type_of(dtype)) {
    fail(VELO_ERR_DTYPE, "args.packed", text("a pack of %s", dtype_name(dtype).buffer),
         text("one of %s", dtype_name(dtype_of(pack.type())).buffer));
  }
  if (pack.k() != p.k) {
    fail(VELO_ERR_SHAPE, "args.packed", core::concat("a pack of ", p.k, " rows"),
         core::concat("one of ", pack.k()));
  }
  p.n = pack.n();
  p.ldb = 0;
}

}  // namespace

void weight_operand::require(velo_dtype dtype, gemm_problem& p) const {
  p.transpose_b = transposed;
  if (packed != nullptr) return require_pack(*this, dtype, p);
  if (matrix == nullptr) {
    fail(VELO_ERR_NULL, text("args.%s", field), "a tensor, or packed", "NULL");
  }
  require_rank(*matrix, field, 2, 2);
  require_dtype(*matrix, field, dtype);
  p.n = matrix->shape[transposed ? 0 : 1];
  const std::int64_t wanted[] = {transposed ? p.n : p.k, transposed ? p.k : p.n};
  require_shape(*matrix, field, 2, wanted);
  p.ldb = fold(*matrix, field).ld;
}

const char* weight_operand::reject(const kernel_entry& kernel) const {
  if (packed == nullptr || static_cast<const gemm_kernels*>(kernel.kernels)->plain())
    return nullptr;
  return matrix_of(packed).serves(kernel.isa) ? nullptr
                                              : "the pack has the form of another instruction set";
}

double weight_operand::packed_bytes(velo_dtype dtype, const gemm_problem& p) const {
  return packed == nullptr ? 0 : bytes_of_rows(p.k, p.n, dtype);
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
  pack_ = &core::resolve<weight_pack>(weight.packed, "args.packed").matrix();
  here_.emplace(weight.packed, core::part::given);
}

}  // namespace velo::ops
