// Which bytes a tensor reaches, and whether two tensors share some.
//
// The functions take tensors with elements that passed a check (check.hpp). Extents decide nearly
// always; only where they meet do strides matter.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.hpp"
#include "core/tensor/shape.hpp"
#include "velo/types.h"

namespace velo::core {

inline std::uintptr_t first_byte(const velo_tensor& t) {
  return reinterpret_cast<std::uintptr_t>(t.data) + t.byte_offset;
}

// Bytes from the first to past the last one that a tensor of `elements` reaches with strides of 0
// or more.
inline std::uintptr_t bytes_reached(const velo_tensor& t, std::int64_t elements) {
  std::int64_t last = elements - 1;
  if (t.strides != nullptr) {
    last = 0;
    for (int i = 0; i < t.ndim; ++i) last += t.strides[i] * (t.shape[i] - 1);
  }
  return static_cast<std::uintptr_t>(bytes_of(t.dtype, last + 1));
}

// Whether strides certainly give every element a place of its own: each steps over all that the
// smaller ones reach.
bool elements_apart(const velo_tensor& t);

// Whether both have one element beside the other at every index: the same first byte, sizes and
// strides.
bool same_view(const velo_tensor& a, const velo_tensor& b);

// Whether two views lie side by side in common rows, like queries, keys and values in a fused
// projection: their extents overlap, their elements do not.
bool side_by_side(const velo_tensor& a, const velo_tensor& b);

// Throws OVERLAP: `argument` shares memory with `other`. or_same: the two may be one tensor.
[[noreturn]] void refuse_overlap(const char* argument, const char* other, bool or_same);

}  // namespace velo::core
