// The checks of weights of int8 or int4, in tensors or in packs.
#include "ops/matmul/quantized_operand.hpp"

#include "ops/gemm/element_dtype.hpp"
#include "ops/matmul/pack.hpp"
#include "ops/matmul/weight_operand.hpp"
#include "ops/operator/cost.hpp"
#include "ops/quant/weight_product.hpp"

namespace velo::ops {

weight_sizes quantized_operand::require(velo_dtype x, std::int64_t groups) const {
  const weight_operand weight{fields.weight, packed, fields.transposed, fields.weight_name,
                              "transpose_weight"};
  if (packed == nullptr) {
    weight.require_matrix();
    return sizes_of(fields, x);
  }
  const weight_pack& pack = weight.require_pack(true);
  require_count(pack, fields.experts ? std::optional(groups) : std::nullopt);
  weight_sizes sizes{fields.experts ? groups : 1, pack.k(), pack.n(), 1, pack.dtype() == i4};
  require_scales(fields, x, sizes);
  return sizes;
}

double quantized_operand::packed_bytes(const weight_sizes& s) const {
  if (packed == nullptr) return 0;
  return bytes_of_rows(s.experts * s.k, s.n, i8) / (s.int4 ? 2 : 1);
}

quantized_in_use::quantized_in_use(const quantized_operand& operand, const weight_sizes& sizes)
    : operand_(operand), sizes_(sizes) {
  if (operand.packed == nullptr) return;
  pack_ = &core::resolve<weight_pack>(operand.packed, "args.packed");
  here_.emplace(operand.packed, core::part::given);
}

weight_matrix quantized_in_use::matrix(std::int64_t expert) const {
  if (pack_ == nullptr) return matrix_of(operand_.fields, sizes_, expert);
  return matrix_at(pack_->matrix<packed_weight>(expert).data(), operand_.fields, sizes_, expert);
}

velo_dtype factors_of(std::int64_t m, velo_dtype x, const velo_tensor* offset, bool row_invariant) {
  return suits_bf16(m, type_of(x), offset != nullptr, row_invariant) ? bf16 : f32;
}

}  // namespace velo::ops
