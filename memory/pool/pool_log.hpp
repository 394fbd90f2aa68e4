// The lines that a pool writes to the host's log, which call the host with the pool's lock held.
//
// The log function must not call the pool again, since it would wait for the lock that its own
// thread holds: calls compare the thread that logs with their own and refuse. Cost: a load a call.
#pragma once

#include <pthread.h>

#include <atomic>

#include "core/text/log.hpp"
#include "velo/pool.h"

namespace velo::memory {

class pool_log {
 public:
  pool_log(velo_log_fn sink, void* user) noexcept : lines_(sink, user) {
    lines_.set_level(sink != nullptr ? VELO_LOG_WARN : VELO_LOG_OFF);
  }

  void set_handle(const void* handle) noexcept { lines_.serve(handle); }
  void write(velo_log_level level, const char* line) noexcept;  // with the pool's lock

  // Throws STATE in the log function.
  void require_outside() const {
    if (__builtin_expect(writer_.load(std::memory_order_relaxed) == pthread_self(), 0)) refuse();
  }

 private:
  [[noreturn]] __attribute__((cold)) static void refuse();

  core::logger lines_;
  std::atomic<pthread_t> writer_{0};  // the thread that is writing; no thread is 0
};

}  // namespace velo::memory
