// Allocation, release and measuring of managed tensors. All products are checked for overflow.
#include "core/tensor/tensor.hpp"

#include <algorithm>
#include <cstddef>
#include <new>

#include "core/handle/failure.hpp"

namespace velo::core {
namespace {

// Stands before the data of every tensor velo makes; the data begins at the next multiple of 64.
struct block {
  velo_managed_tensor managed;
  std::int64_t shape[max_tensor_rank];
  std::int64_t strides[max_tensor_rank];
  memory_source* memory;
  std::size_t bytes;  // of the whole allocation
};
constexpr std::size_t data_offset = (sizeof(block) + 63) / 64 * 64;

void release_block(velo_managed_tensor* managed) {
  auto* whole = static_cast<block*>(managed->manager_context);
  memory_source* memory = whole->memory;
  memory->give(whole, whole->bytes);
  memory->release();
}

bool is_known(velo_dtype t) {
  if (t.code == VELO_DTYPE_INT && t.bits == 4) return t.lanes == 1;
  const bool whole = t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64;
  if (t.lanes != 1) return false;
  switch (t.code) {
    case VELO_DTYPE_INT:
    case VELO_DTYPE_UINT:
      return whole;
    case VELO_DTYPE_FLOAT:
      return whole && t.bits != 8;
    case VELO_DTYPE_BFLOAT:
      return t.bits == 16;
    case VELO_DTYPE_BOOL:
      return t.bits == 8;
    default:
      return false;
  }
}

// of: the tensor, where the member is one. Names are put together for a failure alone, since
// that takes longer than the checks.
void check_rank(int ndim, const char* member, const char* of = "") {
  if (ndim < 0 || ndim > max_tensor_rank)
    fail(VELO_ERR_RANK, text("%s%s", of, member), text("0 to %d dimensions", max_tensor_rank),
         text("%d", ndim));
}

void check_sizes(int ndim, const std::int64_t* shape, const char* member, const char* of = "") {
  if (ndim > 0 && shape == nullptr)
    fail(VELO_ERR_NULL, text("%s%s", of, member), text("%d sizes", ndim), "NULL");
  for (int i = 0; i < ndim; ++i) {
    if (shape[i] < 0)
      fail(VELO_ERR_SHAPE, text("%s%s[%d]", of, member, i), "a size >= 0",
           text("%lld", static_cast<long long>(shape[i])));
  }
}

[[noreturn]] void too_large(const char* argument) {
  fail(VELO_ERR_SHAPE, argument, "sizes whose bytes fit in 63 bits", "an overflow");
}

}  // namespace

velo_managed_tensor* make_tensor(memory_source& memory, velo_dtype dtype, int ndim,
                                 const std::int64_t* shape) {
  check_rank(ndim, "ndim");
  check_sizes(ndim, shape, "shape");
  if (!is_known(dtype)) {
    fail(VELO_ERR_DTYPE, "dtype",
         "an integer, float, bfloat16 or bool of whole bytes, or int4, one lane",
         text("code %d, %d bits, %d lanes", dtype.code, dtype.bits, dtype.lanes));
  }
  const bool pairs = dtype.bits < 8;  // two elements a byte
  if (pairs && (ndim == 0 || shape[ndim - 1] % 2 != 0))
    fail(VELO_ERR_SHAPE, "shape", "an even last size, for int4", "another");
  std::int64_t bytes = pairs ? 1 : dtype.bits / 8;
  bool empty = false;
  for (int i = 0; i < ndim; ++i) empty = empty || shape[i] == 0;
  for (int i = 0; i < ndim && !empty; ++i)
    if (__builtin_mul_overflow(bytes, shape[i], &bytes)) too_large("shape");
  if (pairs) bytes /= 2;
  std::int64_t total = 0;
  if (__builtin_add_overflow(empty ? 0 : bytes, std::int64_t{data_offset}, &total))
    too_large("shape");

  const auto whole = static_cast<std::size_t>(total);
  auto* made = new (memory.take(whole)) block{};
  memory.retain();
  made->memory = &memory;
  made->bytes = whole;
  std::int64_t stride = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    made->shape[i] = shape[i];
    made->strides[i] = stride;
    if (!empty) stride *= shape[i];
  }
  made->managed.version = {1, 0};
  made->managed.manager_context = made;
  made->managed.deleter = &release_block;
  made->managed.tensor = {reinterpret_cast<char*>(made) + data_offset,
                          {VELO_DEVICE_CPU, 0},
                          ndim,
                          dtype,
                          made->shape,
                          made->strides,
                          0};
  return &made->managed;
}

void check_tensor(const velo_tensor& tensor, const char* argument) {
  check_rank(tensor.ndim, ".ndim", argument);
  check_sizes(tensor.ndim, tensor.shape, ".shape", argument);
}

std::uint64_t tensor_extent(const velo_tensor& tensor, const char* argument) {
  for (int i = 0; i < tensor.ndim; ++i)
    if (tensor.shape[i] == 0) return 0;
  std::int64_t reach = 0, compact = 1;  // elements past the first
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    const std::int64_t stride = tensor.strides == nullptr ? compact : tensor.strides[i];
    std::int64_t span = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, stride, &span) || span == INT64_MIN ||
        __builtin_add_overflow(reach, span < 0 ? -span : span, &reach) ||
        (tensor.strides == nullptr && __builtin_mul_overflow(compact, tensor.shape[i], &compact)))
      too_large(argument);
  }
  const std::int64_t bits = std::int64_t{tensor.dtype.bits} * tensor.dtype.lanes;
  const std::int64_t unit = bits == 4 ? 4 : (bits + 7) / 8 * 8;  // int4 alone is packed
  std::int64_t all = 0;
  if (__builtin_add_overflow(reach, 1, &reach) || __builtin_mul_overflow(reach, unit, &all) ||
      all > INT64_MAX - 7)
    too_large(argument);
  const std::int64_t bytes = (all + 7) / 8;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace velo::core
