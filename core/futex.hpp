// Sleeping on a 32-bit word until somebody changes it, as Linux offers it (futex,
// private to the process).
//
// wait returns when woken, when the word no longer holds `seen`, on a signal, or when the deadline
// passes: callers look at the word again in every case. Cost: about 16 us for a sleep and a wake on
// a virtual machine.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace velo::core {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4);

// timeout: relative, nullptr = for ever.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen,
                       const timespec* timeout = nullptr) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, timeout, nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int sleepers) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

}  // namespace velo::core
