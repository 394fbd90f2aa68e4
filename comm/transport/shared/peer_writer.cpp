// Sizes at which a way pays (peer_writer.hpp).
#include "comm/transport/shared/peer_writer.hpp"

#include <cstring>

namespace velo::comm {
namespace {

constexpr std::int64_t through_up_to = 1 << 20;  // more would push out what it has just written

}  // namespace

// What is short goes through the cache anyway, since the fence would cost more.
bool peer_writer::goes_through(std::int64_t bytes) const noexcept {
  return bytes < judged_from || (near_.is_near() && bytes <= through_up_to);
}

void peer_writer::copy(const reduction_kernels& kernels, const void* from, char* to,
                       std::int64_t bytes) const {
  if (!goes_through(bytes)) {
    kernels.copy_around_cache({from, to, bytes});
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace velo::comm
