// Tensors of tests: names of dtypes, views of memory, and an owner of float32 elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

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

// A float32 tensor with its own elements; `view` is the argument of C functions.
struct float_tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> data;
  velo_tensor view{};
  explicit float_tensor(std::initializer_list<std::int64_t> sizes, float value = 0) : shape(sizes) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    data.assign(static_cast<std::size_t>(count), value);
    view = view_of(data.data(), f32, shape.data(), static_cast<std::int32_t>(shape.size()));
  }
  float_tensor(const float_tensor&) = delete;
  float_tensor& operator=(const float_tensor&) = delete;
};

}  // namespace velo::testing
