// A lock of the process that survives a fork: it remembers who took it, and a child that finds it
// held by an ancestor takes it over. What it guards must therefore be usable at any moment.
// Not re-entrant, held shortly, not hot: a system call.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace velo::adapters {

class fork_lock {
 public:
  void lock() noexcept;
  void unlock() noexcept;

 private:
  std::atomic<pid_t> holder_{0};
};

}  // namespace velo::adapters
