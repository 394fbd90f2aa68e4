// Process numbers distinguish processes.
#include "capi/adapters/fork_lock.hpp"

#include <sched.h>
#include <unistd.h>

namespace velo::adapters {

void fork_lock::lock() noexcept {
  const pid_t mine = getpid();
  while (true) {
    pid_t holder = 0;
    if (holder_.compare_exchange_weak(holder, mine, std::memory_order_acquire)) return;
    if (holder != 0 && holder != mine &&
        holder_.compare_exchange_weak(holder, mine, std::memory_order_acquire))
      return;
    sched_yield();
  }
}

void fork_lock::unlock() noexcept {
  holder_.store(0, std::memory_order_release);
}

}  // namespace velo::adapters
