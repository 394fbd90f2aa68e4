// Counting and comparing sizes (shape.hpp).
#include "core/tensor/shape.hpp"

#include <cstring>

#include "core/round_up.hpp"

namespace velo::core {

bool countable(int rank, const std::int64_t* sizes) {
  // Nearly always one comparison decides: four sizes below 2^14 multiply to less than 2^57.
  std::uint64_t bits = 0;
  for (int i = 0; i < rank; ++i) bits |= static_cast<std::uint64_t>(sizes[i]);
  if (rank <= 4 && bits >> 14 == 0) return true;
  constexpr std::int64_t most = std::int64_t{1} << 62, most_elements = std::int64_t{1} << 57;
  std::int64_t all = 1;
  bool empty = false;
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] < 0) return false;
    empty = empty || sizes[i] == 0;
    if (sizes[i] != 0 && (__builtin_mul_overflow(all, sizes[i], &all) || all > most)) return false;
  }
  return empty || all < most_elements;
}

text shape_name(int rank, const std::int64_t* sizes) {
  text out("[");
  for (int i = 0; i < rank && std::strlen(out) + 24 < sizeof out.buffer; ++i)
    out = concat(out, i == 0 ? "" : ", ", sizes[i]);
  return concat(out, "]");
}

bool is_compact(const velo_tensor& t) {
  if (t.strides == nullptr || is_empty(t)) return true;
  std::int64_t expected = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

bool same_shape(const velo_tensor& a, const velo_tensor& b) {
  return a.ndim == b.ndim &&
         (a.ndim == 0 || std::memcmp(a.shape, b.shape,
                                     sizeof(std::int64_t) * static_cast<std::size_t>(a.ndim)) == 0);
}

std::uint64_t tensor_extent(const velo_tensor& tensor, const char* argument) {
  const auto too_large = [&] {
    fail(VELO_ERR_SHAPE, argument, "sizes whose bytes fit in 63 bits",
         shape_name(tensor.ndim, tensor.shape));
  };
  if (is_empty(tensor)) return 0;
  std::int64_t reach = 0, compact = 1;  // elements after the first
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    const std::int64_t stride = tensor.strides == nullptr ? compact : tensor.strides[i];
    std::int64_t span = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, stride, &span) || span == INT64_MIN ||
        __builtin_add_overflow(reach, span < 0 ? -span : span, &reach) ||
        (tensor.strides == nullptr && __builtin_mul_overflow(compact, tensor.shape[i], &compact)))
      too_large();
  }
  const std::int64_t bits = std::int64_t{tensor.dtype.bits} * tensor.dtype.lanes;
  const std::int64_t unit = bits == 4 ? 4 : round_up(bits, 8);  // only int4 is packed
  std::int64_t all = 0;
  if (__builtin_add_overflow(reach, 1, &reach) || __builtin_mul_overflow(reach, unit, &all) ||
      all > INT64_MAX - 7)
    too_large();
  return static_cast<std::uint64_t>(ceil_div(all, 8));
}

}  // namespace velo::core
