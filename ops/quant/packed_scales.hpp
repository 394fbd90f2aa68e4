// Scales of int8 products as float32: int64 and uint64 have one in their low half, as Ascend's
// processors read it.
#pragma once

#include <cstring>

#include "ops/operator/widened.hpp"

namespace velo::ops {

inline const float* scales_of(const velo_tensor& t, core::arena& scratch) {
  if (t.dtype.bits != 64) return widened(t, scratch);
  const std::int64_t n = numel(t);
  auto* scales = scratch.take<float>(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const auto low = static_cast<std::uint32_t>(data<const std::uint64_t>(&t)[i]);
    std::memcpy(scales + i, &low, sizeof low);
  }
  return scales;
}
inline const float* scales_of(const velo_tensor& t, core::execution& on) {
  return scales_of(t, on.scratch);
}

}  // namespace velo::ops
