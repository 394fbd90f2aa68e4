// The kernels that a product runs on: an instruction set, and how it multiplies bf16.
#pragma once

#include "core/host/cpu.hpp"
#include "ops/gemm/kernel/element_type.hpp"

namespace velo::ops {

// `dot`: bf16 is multiplied as it is, on tile registers or by the dot product. Otherwise packing
// widens it to f32, which is faster where the dot product is slow or missing. Packing always widens
// f16, exactly.
struct gemm_target {
  core::isa isa;
  bool dot;

  gemm_target(core::isa isa);  // implicit: the isa's faster way
  gemm_target(core::isa l, bool d) : isa(l), dot(d) {}

  // The type of the words that products of this type multiply.
  element_type words_of(element_type type) const {
    return dot && type == element_type::bf16 ? type : element_type::f32;
  }
};

// Whether the bf16 dot product beats widening to f32 on this processor.
bool dot_product_pays();

}  // namespace velo::ops
