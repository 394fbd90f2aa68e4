// Managed tensors: memory of a context's allocator that crosses the boundary with its deleter.
//
// One allocation holds the header, the DLPack struct, shape, strides, and behind them the data; the
// header keeps a reference to the memory source, so that a tensor may be released after its context
// is gone. Not hot.
#pragma once

#include <cstdint>

#include "core/host/memory.hpp"
#include "velo/tensor.h"

namespace velo::core {

// Throws VELO_ERR_RANK, SHAPE, DTYPE or MEMORY; the caller releases by the deleter.
velo_managed_tensor* make_tensor(memory_source& memory, velo_dtype dtype, int ndim,
                                 const std::int64_t* shape);

}  // namespace velo::core
