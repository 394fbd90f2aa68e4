// Names and predicates of tensors (tensor.hpp).
#include "ops/operator/tensor.hpp"

#include <cstdio>
#include <cstring>

namespace velo::ops {
namespace {

struct named_dtype {
  velo_dtype type;
  std::uint32_t bit;
  const char* name;
};

constexpr named_dtype named_dtypes[] = {
    {{VELO_DTYPE_FLOAT, 32, 1}, dtype_f32, "float32"},
    {{VELO_DTYPE_BFLOAT, 16, 1}, dtype_bf16, "bfloat16"},
    {{VELO_DTYPE_FLOAT, 64, 1}, dtype_f64, "float64"},
    {{VELO_DTYPE_FLOAT, 16, 1}, dtype_f16, "float16"},
    {{VELO_DTYPE_INT, 32, 1}, dtype_i32, "int32"},
    {{VELO_DTYPE_INT, 64, 1}, dtype_i64, "int64"},
    {{VELO_DTYPE_UINT, 8, 1}, dtype_u8, "uint8"},
    {{VELO_DTYPE_BOOL, 8, 1}, dtype_bool, "bool"},
    {{VELO_DTYPE_INT, 8, 1}, dtype_i8, "int8"},
    {{VELO_DTYPE_UINT, 64, 1}, dtype_u64, "uint64"},
    {{VELO_DTYPE_INT, 4, 1}, dtype_i4, "int4"},
};

}  // namespace

std::uint32_t dtype_bit_of(velo_dtype type) {
  for (const named_dtype& known : named_dtypes) {
    if (known.type == type) return known.bit;
  }
  return 0;
}

core::text dtype_name(velo_dtype type) {
  for (const named_dtype& known : named_dtypes) {
    if (known.type == type) return core::text("%s", known.name);
  }
  return core::text("dtype {code %d, bits %d, lanes %d}", type.code, type.bits, type.lanes);
}

core::text dtype_names(std::uint32_t bits) {
  core::text out("%s", "");
  std::size_t used = 0;
  for (const named_dtype& known : named_dtypes) {
    if ((bits & known.bit) == 0) continue;
    used += static_cast<std::size_t>(std::snprintf(out.buffer + used, sizeof out.buffer - used,
                                                   "%s%s", used == 0 ? "" : " or ", known.name));
  }
  return out;
}

core::text shape_name(int rank, const std::int64_t* sizes) {
  core::text out("[");
  std::size_t used = 1;
  for (int i = 0; i < rank && used + 24 < sizeof out.buffer; ++i) {
    used += static_cast<std::size_t>(std::snprintf(out.buffer + used, sizeof out.buffer - used,
                                                   "%s%lld", i == 0 ? "" : ", ",
                                                   static_cast<long long>(sizes[i])));
  }
  std::snprintf(out.buffer + used, sizeof out.buffer - used, "]");
  return out;
}

bool countable(int rank, const std::int64_t* sizes) {
  // The fast path: four sizes below 2^14 multiply to less than 2^57.
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

bool is_compact(const velo_tensor& t) {
  if (t.strides == nullptr || numel(t) == 0) return true;
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

}  // namespace velo::ops
