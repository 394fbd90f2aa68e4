// The sizes from which each kind of store pays off (peer_writer.hpp).
#include "comm/transport/shared/peer_writer.hpp"

#include <cstring>

namespace velo::comm {
namespace {

constexpr std::int64_t most_cached_bytes = 1 << 20;  // more would evict its own lines

}  // namespace

// Short copies always go through the cache, since the fence would cost more.
bool peer_writer::uses_cache(std::int64_t bytes) const noexcept {
  return bytes < least_probed_bytes || (probe_.shares_cache() && bytes <= most_cached_bytes);
}

void peer_writer::copy(const reduction_kernels& kernels, const void* from, char* to,
                       std::int64_t bytes) const {
  if (!uses_cache(bytes)) {
    kernels.copy_around_cache({from, to, bytes});
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace velo::comm
