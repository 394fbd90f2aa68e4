// The pool behind a handle, for the entries of pool.h and history.h.
#pragma once

#include "core/failure.hpp"
#include "memory/pool/pool.hpp"
#include "velo/context.h"

namespace velo::capi {

// A closed pool exists only for its last blocks, and is refused.
__attribute__((always_inline)) inline memory::pool& pool_of(velo_pool handle) {
  auto& found = core::resolve<memory::pool>(handle, "pool");
  if (__builtin_expect(found.is_closed(), 0))
    core::fail(VELO_ERR_HANDLE, "pool", "a pool", "a destroyed pool");
  found.require_not_logging();
  return found;
}

// Whether this is the allocator that velo_pool_allocator returns.
bool is_of_pool(const velo_allocator& given) noexcept;

}  // namespace velo::capi
