// Sizes at which a way pays (peer_writer.hpp).
#include "comm/transport/peer_writer.hpp"

#include <cstring>

#include "core/clock.hpp"

namespace velo::comm {
namespace {

// Less than the first goes through the cache, since the fence would cost more; less than the second
// around it, since it is read about as soon from either, and is not worth the clock.
constexpr std::int64_t around_from = 4096, timed_from = 16 << 10;
constexpr std::int64_t trial_bytes = 16 << 10;
constexpr std::int64_t through_up_to = 1 << 20;  // more would push out what it has just written

}  // namespace

void peer_writer::copy(const reduction_kernels& kernels, const void* from, char* to,
                       std::int64_t bytes) {
  if (bytes < around_from) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  const char* rest = static_cast<const char*>(from);
  if (bytes >= timed_from && bytes <= through_up_to) {
    const std::int64_t now = core::now_ns();
    if (near_.is_near()) return through(rest, to, bytes, now);
    if (near_.wants_trial(now)) {
      through(rest, to, trial_bytes, now);
      rest += trial_bytes, to += trial_bytes, bytes -= trial_bytes;
    }
  }
  kernels.copy_around_cache({rest, to, bytes});
}

bool peer_writer::may_go_through(std::int64_t bytes) const noexcept {
  return near_.is_near() || (bytes >= timed_from && near_.wants_trial(core::now_ns()));
}

void peer_writer::through(const char* from, char* to, std::int64_t bytes, std::int64_t begun) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
  const std::int64_t now = core::now_ns();
  near_.took(bytes, now - begun, now);
}

}  // namespace velo::comm
