// Reads a host's allocator, for every entry that takes one.
#pragma once

#include "capi/src/boundary.hpp"
#include "velo/context.h"

namespace velo::capi {

inline constexpr std::uint32_t allocator_size = 32;  // of ABI 1.0; later ones are longer
static_assert(sizeof(velo_allocator) >= allocator_size);

// argument: its path in error records.
inline velo_allocator read_allocator(const velo_allocator* given, const char* argument) {
  const velo_allocator read = read_struct(given, allocator_size, argument, {});
  if (read.allocate == nullptr)
    core::fail(VELO_ERR_NULL, core::text("%s.allocate", argument), "a function", "NULL");
  if (read.deallocate == nullptr)
    core::fail(VELO_ERR_NULL, core::text("%s.deallocate", argument), "a function", "NULL");
  return read;
}

}  // namespace velo::capi
