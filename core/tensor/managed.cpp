// Allocation and release of managed tensors. All products are checked for overflow.
#include "core/tensor/managed.hpp"

#include <cstddef>
#include <new>

#include "core/failure.hpp"
#include "core/round_up.hpp"
#include "core/tensor/check.hpp"

namespace velo::core {
namespace {

// The header in front of the data of every tensor that velo makes. The data begins at the next
// multiple of 64.
struct block {
  velo_managed_tensor managed;
  std::int64_t shape[max_rank];
  std::int64_t strides[max_rank];
  memory_source* memory;
  std::size_t bytes;  // of the whole allocation
};
constexpr std::size_t data_offset = round_up(sizeof(block), 64);

void release_block(velo_managed_tensor* managed) {
  auto* whole = static_cast<block*>(managed->manager_context);
  memory_source* memory = whole->memory;
  memory->give(whole, whole->bytes);
  memory->release();
}

}  // namespace

velo_managed_tensor* make_tensor(memory_source& memory, velo_dtype dtype, int ndim,
                                 const std::int64_t* shape) {
  const tensor_path argument("");  // the members are arguments of their own: "ndim"
  velo_tensor view{};
  view.ndim = ndim;
  view.shape = const_cast<std::int64_t*>(shape);
  check_sizes(view, argument);
  if (!is_known(dtype))
    refuse_dtype(dtype, "an integer, float, bfloat16 or bool of whole bytes, or int4, one lane",
                 argument);
  const bool pairs = dtype.bits < 8;  // two elements a byte
  if (pairs && (ndim == 0 || shape[ndim - 1] % 2 != 0))
    fail(VELO_ERR_SHAPE, "shape", "an even last size, for int4", shape_name(ndim, shape));
  const bool empty = is_empty(view);
  std::int64_t bytes = pairs ? 1 : dtype.bits / 8, total = 0;
  bool fits = true;
  for (int i = 0; i < ndim && !empty; ++i)
    fits = fits && !__builtin_mul_overflow(bytes, shape[i], &bytes);
  if (pairs) bytes /= 2;
  if (!fits || __builtin_add_overflow(empty ? 0 : bytes, std::int64_t{data_offset}, &total))
    fail(VELO_ERR_SHAPE, "shape", "sizes whose bytes fit in 63 bits", shape_name(ndim, shape));

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

}  // namespace velo::core
