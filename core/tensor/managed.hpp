// Managed tensors: memory of a context's allocator that crosses the boundary with its deleter.
//
// One allocation holds the header, the DLPack struct, shape, strides, and then the data. The header
// holds a reference to the memory source, so a tensor may be released after its context is
// destroyed. Not hot.
#pragma once

#include <cstdint>

#include "core/host/memory.hpp"
#include "velo/tensor.h"

namespace velo::core {

// Throws VELO_ERR_RANK, SHAPE, DTYPE or MEMORY. The caller releases the tensor by its deleter.
velo_managed_tensor* make_tensor(memory_source& memory, velo_dtype dtype, int ndim,
                                 const std::int64_t* shape);

}  // namespace velo::core
