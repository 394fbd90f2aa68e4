// The lock under which a context's work runs. It is fair (first come, first served)
// and re-entrant.
//
// It is fair because the thread of a busy stream and an inline caller must alternate; with a mutex
// the stream could run its whole queue first. It is re-entrant because a foreign kernel is given
// the stream it runs on and may call velo with it. Waiters sleep on the word `serving_`. Cost: two
// atomic additions without contention.
#pragma once

#include <pthread.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "core/host/futex.hpp"

namespace velo::core {

class turn_lock {
 public:
  bool held_by_me() const noexcept {
    return holder_.load(std::memory_order_relaxed) == pthread_self();
  }

  void lock() noexcept {
    const std::uint32_t mine = tickets_.fetch_add(1, std::memory_order_relaxed);
    std::uint32_t seen = serving_.load(std::memory_order_acquire);
    while (seen != mine) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      futex_wait(serving_, seen);
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
      seen = serving_.load(std::memory_order_acquire);
    }
    holder_.store(pthread_self(), std::memory_order_relaxed);
  }

  void unlock() noexcept {
    holder_.store(nobody, std::memory_order_relaxed);
    serving_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(serving_, INT_MAX);
  }

 private:
  std::atomic<std::uint32_t> tickets_{0}, serving_{0}, sleepers_{0};
  static constexpr pthread_t nobody = 0;  // no thread of Linux has this number
  std::atomic<pthread_t> holder_{nobody};
};

}  // namespace velo::core
