// Elements whose type is known at run time, as products have them.
#pragma once

#include <cstddef>
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/gemm/kernel/element_type.hpp"

namespace velo::testing {

// The types that products multiply.
inline constexpr ops::element_type element_types[] = {
    ops::element_type::f32, ops::element_type::bf16, ops::element_type::f16};

inline std::size_t size_of(ops::element_type type) {
  return static_cast<std::size_t>(ops::element_bytes(type));
}

// `value` rounded to the type.
inline void put_element(void* to, ops::element_type type, float value) {
  const simd::bf16 brain = simd::to_bf16(value);
  const simd::f16 half = simd::to_f16(value);
  std::memcpy(to,
              type == ops::element_type::f32    ? static_cast<const void*>(&value)
              : type == ops::element_type::bf16 ? static_cast<const void*>(&brain)
                                                : static_cast<const void*>(&half),
              size_of(type));
}

inline float element_at(const void* from, ops::element_type type) {
  float value = 0;
  simd::bf16 brain;
  simd::f16 half;
  if (type == ops::element_type::f32) {
    std::memcpy(&value, from, sizeof value);
  } else if (type == ops::element_type::bf16) {
    std::memcpy(&brain, from, sizeof brain);
    value = simd::to_float(brain);
  } else {
    std::memcpy(&half, from, sizeof half);
    value = simd::to_float(half);
  }
  return value;
}

}  // namespace velo::testing
