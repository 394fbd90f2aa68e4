// Sleeping on a 32-bit word until another thread changes it (Linux's futex), within a process or
// between processes that map the word's page.
//
// wait returns when woken, when the word no longer holds `seen`, on a signal, or at the deadline,
// so callers read the word again in every case. Cost: about 16 us for a sleep and a wake in a
// virtual machine.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace velo::core {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4);

enum class sleepers { of_process, of_any_process };

// timeout: relative; nullptr: for ever.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen,
                       const timespec* timeout = nullptr, sleepers who = sleepers::of_process) {
  const int call = who == sleepers::of_process ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT;
  syscall(SYS_futex, &word, call, seen, timeout, nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int count,
                       sleepers who = sleepers::of_process) {
  const int call = who == sleepers::of_process ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE;
  syscall(SYS_futex, &word, call, count, nullptr, nullptr, 0);
}

}  // namespace velo::core
