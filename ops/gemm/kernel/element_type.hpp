// The element types that products multiply.
#pragma once

#include <stdint.h>

namespace velo::ops {

enum class element_type : int { f32, bf16, f16 };  // sums are f32 for all

// It is always inlined, because files compiled for one ISA may not emit an inline function.
__attribute__((always_inline)) constexpr int64_t element_bytes(element_type type) {
  return type == element_type::f32 ? 4 : 2;
}

}  // namespace velo::ops
