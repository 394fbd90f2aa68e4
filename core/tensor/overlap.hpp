// The bytes that a tensor reaches, and whether two tensors share some of them.
//
// The functions take tensors with elements that passed a check (check.hpp). Extents nearly always
// decide; strides matter only if the extents overlap.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.hpp"
#include "core/tensor/shape.hpp"
#include "velo/types.h"

namespace velo::core {

inline std::uintptr_t first_byte(const velo_tensor& t) {
  return reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
}

// Bytes from the first to past the last element of a tensor of `elements` elements with
// non-negative strides.
inline std::uintptr_t bytes_reached(const velo_tensor& t, std::int64_t elements) {
  std::int64_t last = elements - 1;
  if (t.strides != nullptr) {
    last = 0;
    for (int i = 0; i < t.ndim; ++i) last += t.strides[i] * (t.shape[i] - 1);
  }
  return static_cast<std::uintptr_t>(bytes_of(t.dtype, last + 1));
}

// Whether strides certainly give every element its own bytes: each stride exceeds the reach of the
// smaller ones.
bool elements_apart(const velo_tensor& t);

// Whether both have an element at the same address for every index: the same first byte, sizes and
// strides.
bool same_view(const velo_tensor& a, const velo_tensor& b);

// Whether two views are side by side in common rows, as queries, keys and values in a fused
// projection: their extents overlap, their elements do not.
bool side_by_side(const velo_tensor& a, const velo_tensor& b);

// Throws OVERLAP: `argument` shares memory with `other`. or_same: the text adds that they may be
// the same tensor.
[[noreturn]] void refuse_overlap(const char* argument, const char* other, bool or_same);

}  // namespace velo::core
