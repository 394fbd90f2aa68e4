// Managed tensors: memory of a context's allocator that crosses the boundary with its deleter, and
// checks of foreign ones.
//
// One allocation holds the header, the DLPack struct, shape, strides, and behind them the data; the
// header keeps a reference to the memory source, so that a tensor may be released after its context
// is gone. Not hot.
#pragma once

#include <cstdint>

#include "core/host/memory.hpp"
#include "velo/tensor.h"

namespace velo::core {

inline constexpr int max_tensor_rank = 8;

// Throws VELO_ERR_RANK, SHAPE, DTYPE or MEMORY; the caller releases by the deleter.
velo_managed_tensor* make_tensor(memory_source& memory, velo_dtype dtype, int ndim,
                                 const std::int64_t* shape);

// Rank, sizes and strides that make sense; throws VELO_ERR_RANK or
// VELO_ERR_SHAPE. argument: "tensor".
void check_tensor(const velo_tensor& tensor, const char* argument);

// Bytes from the first to one past the last element reached; 0 when empty. Throws VELO_ERR_SHAPE
// when they overflow.
std::uint64_t tensor_extent(const velo_tensor& tensor, const char* argument);

}  // namespace velo::core
