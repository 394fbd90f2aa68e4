// Sizes, strides and reach of a velo_tensor.
//
// But for `countable` and `tensor_extent`, the functions take tensors that passed a check
// (check.hpp), so that no product of sizes overflows. Not hot.
#pragma once

#include <cstdint>

#include "core/failure.hpp"
#include "velo/types.h"

namespace velo::core {

inline constexpr int max_rank = 8;

// Whether sizes can be counted with. Those other than 0 multiply to at most 2^62, and with no 0
// among them to fewer than 2^57: the product of any of them fits an int64, and of elements that
// exist the bytes do, too.
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

// Elements of the last `trailing` dimensions together, and how many such rows there are.
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

// Bytes from the first to one past the last element reached, in any order of strides; 0 when empty.
// Throws VELO_ERR_SHAPE when they overflow.
std::uint64_t tensor_extent(const velo_tensor& tensor, const char* argument);

}  // namespace velo::core
