// A request to a pool whose numbers have all been checked. The fast path never makes one.
#pragma once

#include <cstdint>

#include "velo/pool.h"

namespace velo::memory {

struct pool_request {
  std::uint64_t bytes;
  std::uint64_t alignment;       // a power of two >= 64
  velo_stream stream = nullptr;  // a queued stream, or nullptr: the order of the host's calls
  std::uint8_t purpose = VELO_PURPOSE_OTHER;
  std::uint8_t lifetime = VELO_LIFETIME_DEFAULT;
  bool zero = false;
};

}  // namespace velo::memory
