// Tensors: tensor_view describes memory that it does not own; managed_tensor owns memory by
// DLPack's rules.
//
// A tensor_view contains its sizes and strides (up to eight of each), so it can be made in one
// line, copied and returned. It converts to the arguments of the C functions. It never owns or
// touches the data.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "velo/bfloat16.hpp"
#include "velo/detail/call.hpp"
#include "velo/detail/function.hpp"
#include "velo/detail/owner.hpp"
#include "velo/tensor.h"

VELO_CPP_BEGIN

// The dtype of an element type.
template <class T>
struct dtype_of;
template <class T>
struct dtype_of<const T> : dtype_of<T> {};

namespace detail {
template <uint8_t Code, uint8_t Bits>
struct dtype_constant {
  static constexpr velo_dtype value = {Code, Bits, 1};
};
struct release_managed {
  static void call(velo_managed_tensor* tensor) noexcept { VELO_FN(tensor_release)(tensor); }
};
}  // namespace detail

template <>
struct dtype_of<float> : detail::dtype_constant<VELO_DTYPE_FLOAT, 32> {};
template <>
struct dtype_of<double> : detail::dtype_constant<VELO_DTYPE_FLOAT, 64> {};
// float16 has no type here: give velo_dtype{VELO_DTYPE_FLOAT, 16, 1} as a value.
template <>
struct dtype_of<bfloat16> : detail::dtype_constant<VELO_DTYPE_BFLOAT, 16> {};
template <>
struct dtype_of<int8_t> : detail::dtype_constant<VELO_DTYPE_INT, 8> {};
template <>
struct dtype_of<int16_t> : detail::dtype_constant<VELO_DTYPE_INT, 16> {};
template <>
struct dtype_of<int32_t> : detail::dtype_constant<VELO_DTYPE_INT, 32> {};
template <>
struct dtype_of<int64_t> : detail::dtype_constant<VELO_DTYPE_INT, 64> {};
template <>
struct dtype_of<uint8_t> : detail::dtype_constant<VELO_DTYPE_UINT, 8> {};
template <>
struct dtype_of<bool> : detail::dtype_constant<VELO_DTYPE_BOOL, 8> {};

template <class T>
inline constexpr velo_dtype dtype = dtype_of<T>::value;

// A list of sizes or strides: {8, 512, 4096}, or a pointer and a count. It holds up to eight. A
// longer list keeps its count, so that the call that gets it refuses the rank by name.
class sizes {
 public:
  sizes(std::initializer_list<int64_t> values) noexcept
      : sizes(values.begin(), static_cast<int32_t>(values.size())) {}
  sizes(const int64_t* values, int32_t count) noexcept : count_(count) {
    for (int32_t i = 0; i < 8; ++i) values_[i] = i < count ? values[i] : 0;
  }

  const int64_t* data() const noexcept { return values_; }
  int32_t count() const noexcept { return count_; }

 private:
  int64_t values_[8];
  int32_t count_;
};

class tensor_view {
 public:
  static constexpr int32_t max_rank = 8;

  // No tensor: rank 0, no data. To omit an optional argument, do not set it at all.
  tensor_view() noexcept : tensor_view(nullptr, velo_dtype{VELO_DTYPE_FLOAT, 32, 1}, {0}) {}

  // A compact row-major tensor of the pointer's element type. Inputs may be const, since velo
  // writes only outputs.
  template <class T>
  tensor_view(T* data, sizes shape) noexcept : tensor_view(data, dtype<T>, shape) {}

  // A strided tensor; strides count elements.
  template <class T>
  tensor_view(T* data, sizes shape, sizes strides) noexcept
      : tensor_view(data, dtype<T>, shape, strides) {}

  // The same with the dtype as a value. A rank above eight is kept, so that the call that gets the
  // view refuses it.
  tensor_view(const void* data, velo_dtype type, sizes shape) noexcept {
    assign(data, type, shape.data(), nullptr, shape.count());
  }
  tensor_view(const void* data, velo_dtype type, sizes shape, sizes strides) noexcept {
    assign(data, type, shape.data(), strides.count() == shape.count() ? strides.data() : nullptr,
           shape.count());
    if (strides.count() != shape.count()) tensor_.ndim = -1;  // refused by every call
  }

  // A copy of a C tensor's description.
  explicit tensor_view(const velo_tensor& tensor) noexcept {
    assign(tensor.data, tensor.dtype, tensor.shape, tensor.strides, tensor.ndim);
    tensor_.device = tensor.device;
    tensor_.byte_offset = tensor.byte_offset;
  }

  tensor_view(const tensor_view& other) noexcept : tensor_view(other.tensor_) {}
  tensor_view& operator=(const tensor_view& other) noexcept {
    if (this != &other) {
      const velo_tensor& from = other.tensor_;
      assign(from.data, from.dtype, from.shape, from.strides, from.ndim);
      tensor_.device = from.device;
      tensor_.byte_offset = from.byte_offset;
    }
    return *this;
  }

  operator const velo_tensor&() const noexcept { return tensor_; }
  // For the args structs. A temporary would be destroyed before the call, so give the view a name.
  operator const velo_tensor*() const& noexcept { return &tensor_; }
  operator const velo_tensor*() const&& = delete;
  const velo_tensor* get() const& noexcept { return &tensor_; }

  int32_t rank() const noexcept { return tensor_.ndim; }
  int64_t size(int32_t dimension) const noexcept { return shape_[dimension]; }
  velo_dtype type() const noexcept { return tensor_.dtype; }
  int64_t stride(int32_t dimension) const noexcept {
    if (tensor_.strides != nullptr) return strides_[dimension];
    int64_t stride = 1;
    for (int32_t i = tensor_.ndim - 1; i > dimension; --i) stride *= shape_[i];
    return stride;
  }
  // The number of elements.
  int64_t numel() const noexcept {
    int64_t n = 1;
    for (int32_t i = 0; i < tensor_.ndim && i < max_rank; ++i) n *= shape_[i];
    return n;
  }
  // The address of the first element. The caller ensures that T is the element type.
  template <class T>
  T* data() const noexcept {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(tensor_.data) + tensor_.byte_offset);
  }

  // The same memory with two dimensions exchanged.
  tensor_view transposed(int32_t a, int32_t b) const noexcept {
    int64_t order[max_rank];
    for (int32_t i = 0; i < max_rank; ++i) order[i] = i;
    order[a] = b;
    order[b] = a;
    tensor_view out(*this);
    for (int32_t i = 0; i < tensor_.ndim; ++i) {
      out.shape_[i] = shape_[order[i]];
      out.strides_[i] = stride(static_cast<int32_t>(order[i]));
    }
    out.tensor_.strides = out.strides_;
    return out;
  }

  // Bytes from the first reachable element to the end of the last one.
  outcome<uint64_t> extent() const {
    uint64_t bytes = 0;
    const velo_status status = VELO_FN(tensor_extent)(&tensor_, &bytes);
    return detail::finish<uint64_t>(status, bytes);
  }

 private:
  void assign(const void* data, velo_dtype type, const int64_t* shape, const int64_t* strides,
              int32_t ndim) noexcept {
    for (int32_t i = 0; i < max_rank; ++i) {
      shape_[i] = i < ndim && shape != nullptr ? shape[i] : 0;
      strides_[i] = i < ndim && strides != nullptr ? strides[i] : 0;
    }
    tensor_ = {const_cast<void*>(data), {VELO_DEVICE_CPU, 0}, ndim, type, shape_, nullptr, 0};
    if (strides != nullptr) tensor_.strides = strides_;
  }

  velo_tensor tensor_;
  int64_t shape_[max_rank];
  int64_t strides_[max_rank];
};

// Memory with a deleter, made by velo or taken over from a framework's __dlpack__ capsule.
class managed_tensor : public detail::owner<velo_managed_tensor*, detail::release_managed> {
 public:
  // A compact tensor from the context's allocator; contents are undefined.
  static outcome<managed_tensor> create(velo_context context, velo_dtype type, sizes shape) {
    velo_managed_tensor* handle = nullptr;
    const velo_status status =
        VELO_FN(tensor_create)(context, &type, shape.count(), shape.data(), &handle);
    return detail::finish<managed_tensor>(status, adopt(handle));
  }

  // Takes over a managed tensor, whose deleter runs when this owner is destroyed.
  static managed_tensor adopt(velo_managed_tensor* handle) noexcept {
    managed_tensor made;
    made.reset(handle);
    return made;
  }

  // Checks a foreign managed tensor and describes it. Its ownership does not change.
  static outcome<tensor_view> import(velo_context context, velo_managed_tensor* foreign) {
    velo_tensor tensor = {};
    const velo_status status = VELO_FN(tensor_import)(context, foreign, &tensor);
    return detail::finish<tensor_view>(status,
                                       status == VELO_OK ? tensor_view(tensor) : tensor_view());
  }

  // Describes the held memory, of which there must be some.
  tensor_view view() const noexcept { return tensor_view(get()->tensor); }
};

static_assert(sizeof(managed_tensor) == sizeof(void*));

VELO_CPP_END
