// A tensor as a collective sees it: elements one behind the other.
#pragma once

#include <cstdint>

#include "velo/types.h"

namespace velo::core {
class context;
}

namespace velo::comm {

struct buffer {
  char* data;
  std::int64_t count;  // elements
  velo_dtype dtype;

  std::int64_t bytes() const noexcept { return count * (dtype.bits / 8); }
};

// Throws NULL, RANK, SHAPE, DTYPE, LAYOUT (not compact, misaligned), DEVICE.
buffer buffer_of(const core::context& owner, const velo_tensor* given, const char* argument);

// Throws OVERLAP when they share bytes.
void require_apart(const buffer& out, const char* name, const buffer& in, const char* other);

// Throws SHAPE unless `out` has so many elements.
void require_count(const buffer& of, const char* argument, std::int64_t count, const char* why);

}  // namespace velo::comm
