// The element types of products and the dtypes of tensors that hold them.
#pragma once

#include "core/tensor/dtype.hpp"
#include "ops/gemm/kernel/element_type.hpp"

namespace velo::ops {

using core::operator==;

constexpr velo_dtype dtype_of(element_type type) {
  return type == element_type::f32    ? core::f32
         : type == element_type::bf16 ? core::bf16
                                      : core::f16;
}

// `dtype` is one of the three.
constexpr element_type type_of(velo_dtype dtype) {
  return dtype == core::f32    ? element_type::f32
         : dtype == core::bf16 ? element_type::bf16
                               : element_type::f16;
}

}  // namespace velo::ops
