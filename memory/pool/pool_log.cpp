// One line at a time, since the pool's lock is held.
#include "memory/pool/pool_log.hpp"

#include "core/failure.hpp"
#include "core/handle/host_call.hpp"

namespace velo::memory {

// The host's sink may contain cancellation points; the pool has no others.
void pool_log::write(velo_log_level level, const char* line) noexcept {
  const core::uncancelled here;
  writer_.store(pthread_self(), std::memory_order_relaxed);
  lines_.write(level, "pool", "%s", line);
  writer_.store(0, std::memory_order_relaxed);
}

void pool_log::refuse() {
  core::fail(VELO_ERR_STATE, "pool", "a call from outside of the pool's log function",
             "one from within");
}

}  // namespace velo::memory
