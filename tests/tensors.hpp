// Tensors of tests: names of dtypes, views of memory, and owners of elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/dtype_of.hpp"
#include "velo/tensor.h"

namespace velo::testing {

inline constexpr velo_dtype f64{VELO_DTYPE_FLOAT, 64, 1}, f32{VELO_DTYPE_FLOAT, 32, 1},
    f16{VELO_DTYPE_FLOAT, 16, 1}, bf16{VELO_DTYPE_BFLOAT, 16, 1};
inline constexpr velo_dtype i64{VELO_DTYPE_INT, 64, 1}, i32{VELO_DTYPE_INT, 32, 1},
    i8{VELO_DTYPE_INT, 8, 1}, i4{VELO_DTYPE_INT, 4, 1}, u8{VELO_DTYPE_UINT, 8, 1};

// Views read the sizes and strides where they lie, so these must live as long as the view.
constexpr velo_tensor view_of(const void* data, velo_dtype dtype, const std::int64_t* shape,
                              std::int32_t ndim, const std::int64_t* strides = nullptr) {
  return {const_cast<void*>(data), {VELO_DEVICE_CPU, 0}, ndim, dtype, shape, strides, 0};
}
template <std::size_t Rank>
constexpr velo_tensor view_of(const void* data, velo_dtype dtype, const std::int64_t (&shape)[Rank],
                              const std::int64_t* strides = nullptr) {
  return view_of(data, dtype, shape, static_cast<std::int32_t>(Rank), strides);
}
constexpr velo_tensor view_of(const void* data, velo_dtype dtype, const std::int64_t& count) {
  return view_of(data, dtype, &count, 1);
}
velo_tensor view_of(const void* data, velo_dtype dtype, const std::int64_t&& count) = delete;

// A tensor with its own elements; `view` is the argument of C functions.
template <class T>
struct typed_tensor {
  std::vector<std::int64_t> shape;
  std::vector<T> data;
  velo_tensor view{};
  explicit typed_tensor(std::vector<std::int64_t> sizes, T value = 0) : shape(std::move(sizes)) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    data.assign(static_cast<std::size_t>(count), value);
    view =
        view_of(data.data(), dtype_of<T>(), shape.data(), static_cast<std::int32_t>(shape.size()));
  }
  typed_tensor(const typed_tensor&) = delete;
  typed_tensor& operator=(const typed_tensor&) = delete;
};
using float_tensor = typed_tensor<float>;

}  // namespace velo::testing
