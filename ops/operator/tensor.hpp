// Questions about a velo_tensor that every operator asks: how many elements, how long are its rows,
// what is it called.
//
// All functions take tensors that passed the field checks (ops/call/check.cpp), so their sizes are
// countable and no product of them overflows. Not hot.
#pragma once

#include <cstdint>

#include "core/handle/failure.hpp"
#include "ops/operator/spec.hpp"
#include "velo/types.h"

namespace velo::ops {

inline constexpr int max_rank = 8;
inline constexpr velo_dtype f32{VELO_DTYPE_FLOAT, 32, 1};
inline constexpr velo_dtype bf16{VELO_DTYPE_BFLOAT, 16, 1};
inline constexpr velo_dtype i32{VELO_DTYPE_INT, 32, 1};
inline constexpr velo_dtype i64{VELO_DTYPE_INT, 64, 1};

inline bool operator==(velo_dtype a, velo_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

std::uint32_t dtype_bit_of(velo_dtype type);  // one dtype_bit, 0 for types velo has no name for
core::text dtype_name(velo_dtype type);       // "float32"
core::text dtype_names(std::uint32_t bits);   // "float32 or bfloat16"
core::text shape_name(int rank, const std::int64_t* sizes);  // "[2, 3]"

// Bytes of one element; two int4 share a byte, for which `bytes_of` gives the size.
inline std::int64_t element_bytes(velo_dtype type) {
  return (type.bits + 7) / 8;
}
inline std::int64_t bytes_of(velo_dtype type, std::int64_t elements) {
  return type.bits < 8 ? (elements * type.bits + 7) / 8 : elements * element_bytes(type);
}

// Whether sizes can be counted with. Those other than 0 multiply to at most 2^62, and with no 0
// among them to fewer than 2^57: the product of any of them fits an int64, and of elements that
// exist the bytes do, too.
bool countable(int rank, const std::int64_t* sizes);

inline std::int64_t product(const std::int64_t* sizes, int count) {
  std::int64_t all = 1;
  for (int i = 0; i < count; ++i) all *= sizes[i];
  return all;
}
inline std::int64_t numel(const velo_tensor& t) {
  return product(t.shape, t.ndim);
}

// Elements of the last `trailing` dimensions together, and how many such rows there are.
inline std::int64_t row_size(const velo_tensor& t, int trailing = 1) {
  return product(t.shape + (t.ndim - trailing), trailing);
}
inline std::int64_t row_count(const velo_tensor& t, int trailing = 1) {
  return product(t.shape, t.ndim - trailing);
}

bool is_compact(const velo_tensor& t);
bool same_shape(const velo_tensor& a, const velo_tensor& b);

template <class T>
T* data(const velo_tensor* t) {
  return t == nullptr ? nullptr
                      : reinterpret_cast<T*>(static_cast<char*>(t->data) + t->byte_offset);
}

}  // namespace velo::ops
