// The dtype of an element type of C++.
#pragma once

#include <cstdint>
#include <type_traits>

#include "velo/tensor.h"

namespace velo::testing {

// A type that is no number of C++ is a bfloat16.
template <class T>
constexpr velo_dtype dtype_of() {
  constexpr std::uint8_t code = !std::is_arithmetic_v<T>      ? VELO_DTYPE_BFLOAT
                                : std::is_floating_point_v<T> ? VELO_DTYPE_FLOAT
                                : std::is_signed_v<T>         ? VELO_DTYPE_INT
                                                              : VELO_DTYPE_UINT;
  return {code, 8 * sizeof(T), 1};
}

}  // namespace velo::testing
