// Collectives as they are called: arguments checked, and made an operation.
//
// One function for each, in the file of its algorithm. They throw as the C functions say; nothing has
// been told to other ranks by then.
#pragma once

#include "comm/operation.hpp"
#include "core/context.hpp"

namespace velo::comm {

operation barrier_call();
// how: checked.
operation all_reduce_call(const core::context& owner, const velo_reduction& how,
                          const velo_tensor* in, const velo_tensor* out);

}  // namespace velo::comm
