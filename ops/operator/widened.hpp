// A small tensor as float32, for kernels that read it in no other type: gains, biases, tables.
//
// A tensor of float32 is used in place, another one is widened into scratch, exactly. Cost: one
// read and one write of it on the calling thread.
#pragma once

#include <cstdint>

#include "core/simd/scalar.hpp"
#include "ops/operator/definition.hpp"

namespace velo::ops {

inline const float* widened(const velo_tensor& t, core::arena& scratch) {
  if (t.dtype == f32) return data<const float>(&t);
  const std::int64_t n = numel(t);
  auto* wide = scratch.take<float>(static_cast<std::size_t>(n));
  with_element_type(t.dtype, [&](auto element) {
    const auto* narrow = data<const decltype(element)>(&t);
    for (std::int64_t i = 0; i < n; ++i) wide[i] = simd::to_float(narrow[i]);
  });
  return wide;
}
inline const float* widened(const velo_tensor& t, core::execution& on) {
  return widened(t, on.scratch);
}

}  // namespace velo::ops
