// Sizes, strides and reach of a velo_tensor.
//
// Except for `countable` and `tensor_extent`, the functions take tensors that passed a check
// (check.hpp), so no product of sizes overflows. Not hot.
#pragma once

#include <cstdint>

#include "core/failure.hpp"
#include "velo/types.h"

namespace velo::core {

inline constexpr int max_rank = 8;

// Whether products of these sizes fit: the nonzero sizes multiply to at most 2^62 and, if none is
// 0, to less than 2^57. So the product of any of them fits an int64, and so do the bytes of a
// tensor with elements.
bool countable(int rank, const std::int64_t* sizes);

text shape_name(int rank, const std::int64_t* sizes);  // "[2, 3]"

inline std::int64_t product(const std::int64_t* sizes, int count) {
  std::int64_t all = 1;
  for (int i = 0; i < count; ++i) all *= sizes[i];
  return all;
}
inline std::int64_t numel(const velo_tensor& t) {
  return product(t.shape, t.ndim);
}
inline bool is_empty(const velo_tensor& t) {
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] == 0) return true;
  }
  return false;
}

// row_size: the elements of the last `trailing` dimensions together. row_count: the number of such
// rows.
inline std::int64_t row_size(const velo_tensor& t, int trailing = 1) {
  return product(t.shape + (t.ndim - trailing), trailing);
}
inline std::int64_t row_count(const velo_tensor& t, int trailing = 1) {
  return product(t.shape, t.ndim - trailing);
}

bool is_compact(const velo_tensor& t);  // row-major, without gaps
bool same_shape(const velo_tensor& a, const velo_tensor& b);

template <class T>
T* data(const velo_tensor* t) {
  return t == nullptr ? nullptr
                      : reinterpret_cast<T*>(static_cast<char*>(t->data) + t->byte_offset);
}

// Bytes from the first reached element to the end of the last one, for any strides; 0 for an empty
// tensor. Throws VELO_ERR_SHAPE if they overflow.
std::uint64_t tensor_extent(const velo_tensor& tensor, const char* argument);

}  // namespace velo::core
