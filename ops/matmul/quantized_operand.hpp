// The weight of int8 or int4 of a product as an operator gets it: a tensor, or a pack in its place,
// with its scales.
//
// A pack is a handle, so the call resolves it again when it runs. Invariant: while the call runs,
// `quantized_in_use` refuses the pack's destruction. Cost: none for an element.
#pragma once

#include <optional>

#include "core/handle/inside.hpp"
#include "ops/quant/packed_weight.hpp"
#include "ops/quant/weight_matrix.hpp"
#include "velo/types.h"

namespace velo::ops {

class weight_pack;
struct op_cost;

struct quantized_operand {
  weight_fields fields;
  velo_pack packed;

  // Checks the weight and its scales against each other. A pack of experts must have `groups`
  // matrices.
  weight_sizes require(velo_dtype x, std::int64_t groups) const;
  // The bytes that a pack adds to a call's cost; a tensor is a field and is counted already.
  double packed_bytes(const weight_sizes& sizes) const;
};

class quantized_in_use {
 public:
  quantized_in_use(const quantized_operand& operand, const weight_sizes& sizes);

  weight_matrix matrix(std::int64_t expert) const;

 private:
  const quantized_operand& operand_;
  const weight_sizes& sizes_;
  const weight_pack* pack_ = nullptr;
  std::optional<core::inside_scope> here_;
};

// The dtype in which such a product multiplies on processors that multiply bf16.
velo_dtype factors_of(std::int64_t m, velo_dtype x, const velo_tensor* offset, bool row_invariant);

}  // namespace velo::ops
