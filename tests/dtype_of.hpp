// The dtype of an element type of C++.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/simd/types.hpp"
#include "velo/tensor.h"

namespace velo::testing {

// A type that is no number of C++ is a bfloat16, if it is not the float16 of core/simd.
template <class T>
constexpr velo_dtype dtype_of() {
  constexpr bool is_f16 = std::is_same_v<T, simd::f16>;
  constexpr std::uint8_t code = is_f16 || std::is_floating_point_v<T> ? VELO_DTYPE_FLOAT
                                : !std::is_arithmetic_v<T>            ? VELO_DTYPE_BFLOAT
                                : std::is_signed_v<T>                 ? VELO_DTYPE_INT
                                                                      : VELO_DTYPE_UINT;
  return {code, 8 * sizeof(T), 1};
}

}  // namespace velo::testing
