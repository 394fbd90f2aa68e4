// The checks of one tensor, and the text of each mistake.
#include "core/tensor/check.hpp"

#include "core/tensor/overlap.hpp"

namespace velo::core {
namespace {

constexpr const char* whole_bytes = "int, uint, float, bfloat or bool of 1, 2, 4 or 8 bytes";

// The last element must still be addressable, which positive strides alone do not imply.
void check_strides(const velo_tensor& t, const tensor_path& path, const tensor_rule& rule) {
  if (t.strides == nullptr) return;
  if (!rule.strided) check_compact(t, path);
  std::int64_t last = 0;
  for (int i = 0; i < t.ndim; ++i) {
    std::int64_t reach = 0;
    if (t.strides[i] < 0 || __builtin_mul_overflow(t.strides[i], t.shape[i], &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > INT64_MAX / 64) {
      fail(VELO_ERR_LAYOUT, path.member(".strides"),
           "non-negative strides within the address space", shape_name(t.ndim, t.strides));
    }
  }
  if (rule.apart && numel(t) > 0 && !elements_apart(t)) {
    fail(VELO_ERR_LAYOUT, path.member(".strides"),
         "strides of an output: each larger than what the smaller ones reach together",
         shape_name(t.ndim, t.strides));
  }
}

// Two elements share a byte. Rows begin at whole bytes, so the tensor is compact and rows are even.
void check_pairs(const velo_tensor& t, const tensor_path& path) {
  if (t.ndim == 0 || t.shape[t.ndim - 1] % 2 != 0)
    fail(VELO_ERR_SHAPE, path.member(".shape"), "an even last size, for int4",
         shape_name(t.ndim, t.shape));
  if (!is_compact(t))
    fail(VELO_ERR_LAYOUT, path.member(".strides"), "compact row-major strides (or NULL), for int4",
         shape_name(t.ndim, t.strides));
}

void check_shape_pointer(const velo_tensor& t, const tensor_path& path) {
  if (t.ndim > 0 && t.shape == nullptr)
    fail(VELO_ERR_NULL, path.member(".shape"), text("%d size%s", t.ndim, t.ndim == 1 ? "" : "s"),
         "NULL");
}

[[noreturn]] void refuse_size(std::int64_t size, int dimension, const tensor_path& path) {
  fail(VELO_ERR_SHAPE, path.member(text(".shape[%d]", dimension)), "a size of 0 or more",
       number(size));
}

}  // namespace

text tensor_path::member(const char* part) const {
  if (*prefix == 0 && *name == 0) return text("%s", part + 1);
  if (index < 0) return text("%s%s%s", prefix, name, part);
  return concat(prefix, name, "[", index, "]", part);
}

void check_rank(int ndim, const tensor_path& path) {
  if (ndim < 0 || ndim > max_rank)
    fail(VELO_ERR_RANK, path.member(".ndim"), text("0 to %d dimensions", max_rank),
         text("%d", ndim));
}

void check_sizes(const velo_tensor& t, const tensor_path& path) {
  check_rank(t.ndim, path);
  check_shape_pointer(t, path);
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) refuse_size(t.shape[i], i, path);
  }
}

void check_dtype(velo_dtype given, const tensor_path& path, std::uint32_t accepted) {
  if (accepted == any_whole_bytes) {
    if (!is_whole_bytes(given)) refuse_dtype(given, whole_bytes, path);
    return;
  }
  const std::uint32_t bit = dtype_bit_of(given);
  if (bit == 0 || (accepted != 0 && (bit & accepted) == 0))
    refuse_dtype(given, accepted != 0 ? dtype_names(accepted) : text("a dtype velo knows"), path);
}

void check_device(velo_device given, velo_device wanted, const tensor_path& path) {
  if (given.type == wanted.type && given.id == wanted.id) return;
  fail(VELO_ERR_DEVICE, path.member(".device"),
       text("%s of the context", device_name(wanted).buffer), device_name(given));
}

void check_compact(const velo_tensor& t, const tensor_path& path) {
  if (is_compact(t)) return;
  fail(VELO_ERR_LAYOUT, path.member(".strides"), "compact row-major strides (or NULL)",
       shape_name(t.ndim, t.strides));
}

void check_data(const velo_tensor& t, const tensor_path& path) {
  const auto below = static_cast<std::uintptr_t>(element_bytes(t.dtype) - 1);  // powers of two
  const bool aligned = (first_byte(t) & below) == 0;
  if ((t.data != nullptr && aligned) || numel(t) == 0) return;
  if (t.data == nullptr)
    fail(VELO_ERR_NULL, path.member(".data"), "a pointer to the elements", "NULL");
  fail(VELO_ERR_LAYOUT, path.member(".data"),
       text("%s aligned to its %d bytes", dtype_name(t.dtype).buffer,
            static_cast<int>(element_bytes(t.dtype))),
       text("address %#llx", static_cast<unsigned long long>(first_byte(t))));
}

void check_tensor(const velo_tensor& t, const tensor_path& path, const tensor_rule& rule) {
  check_rank(t.ndim, path);
  check_shape_pointer(t, path);
  check_dtype(t.dtype, path, rule.dtypes);
  check_device(t.device, rule.device, path);
  if (!countable(t.ndim, t.shape)) {
    for (int i = 0; i < t.ndim; ++i) {
      if (t.shape[i] < 0) refuse_size(t.shape[i], i, path);
    }
    refuse_sizes(t.ndim, t.shape, path.member(".shape"));
  }
  check_strides(t, path, rule);
  if (t.dtype.bits < 8) check_pairs(t, path);
  if (rule.has_elements) check_data(t, path);
}

void refuse_sizes(int rank, const std::int64_t* sizes, const char* argument) {
  fail(VELO_ERR_SHAPE, argument, "sizes of 0 or more, and fewer than 2^57 elements",
       shape_name(rank, sizes));
}

void refuse_dtype(velo_dtype given, const char* expected, const tensor_path& path) {
  fail(VELO_ERR_DTYPE, path.member(".dtype"), expected, dtype_name(given));
}

}  // namespace velo::core
