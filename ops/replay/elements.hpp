// Elements of a tensor of any dtype as doubles, one by one. Not hot.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/simd/scalar.hpp"
#include "ops/operator/tensor.hpp"

namespace velo::ops {

template <class T>
T load(const char* first, std::int64_t element) {
  T value;
  std::memcpy(&value, first + element * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

inline double floating(velo_dtype type, const char* first, std::int64_t element) {
  if (type == f32) return static_cast<double>(load<float>(first, element));
  if (type == bf16) return static_cast<double>(simd::to_float(load<simd::bf16>(first, element)));
  if (type == f16) return static_cast<double>(simd::to_float(load<simd::f16>(first, element)));
  return load<double>(first, element);
}

inline double integer(velo_dtype type, const char* first, std::int64_t element) {
  if (type.bits == 4) {  // two in a byte, the first in the low half
    const int both = load<std::uint8_t>(first, element / 2);
    const int half = element % 2 == 0 ? both & 15 : both >> 4;
    return half >= 8 ? half - 16 : half;
  }
  if (type.bits == 32) return load<std::int32_t>(first, element);
  if (type.bits == 64) return static_cast<double>(load<std::int64_t>(first, element));
  if (type.code == VELO_DTYPE_INT) return load<std::int8_t>(first, element);
  return load<std::uint8_t>(first, element);
}

inline bool is_floating(velo_dtype type) {
  return type.code == VELO_DTYPE_FLOAT || type.code == VELO_DTYPE_BFLOAT;
}

inline double element_of(const velo_tensor& t, std::int64_t element) {
  const char* first = data<const char>(&t);
  return is_floating(t.dtype) ? floating(t.dtype, first, element)
                              : integer(t.dtype, first, element);
}

// Calls body(offset in elements, indices) for every element of a tensor in row-major order.
template <class Body>
void for_each_element(const velo_tensor& t, Body&& body) {
  std::int64_t at[max_rank] = {};
  const std::int64_t count = numel(t);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = i;
    if (t.strides != nullptr) {
      offset = 0;
      for (int d = 0; d < t.ndim; ++d) offset += at[d] * t.strides[d];
    }
    body(offset, at);
    for (int d = t.ndim - 1; d >= 0 && ++at[d] == t.shape[d]; --d) at[d] = 0;
  }
}

// The largest magnitude of the finite elements.
inline double largest_magnitude(const velo_tensor& t) {
  double largest = 0;
  for_each_element(t, [&](std::int64_t offset, const std::int64_t*) {
    const double value = std::abs(element_of(t, offset));
    if (std::isfinite(value) && value > largest) largest = value;
  });
  return largest;
}

}  // namespace velo::ops
