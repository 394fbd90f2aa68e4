// A second thread that works beside the caller on command, so that a timed stretch has two threads
// in it from its first moment to its last.
//
// It spins for a moment after each piece of work, which the next one follows at once, and sleeps
// when none comes. Pinned to a processor of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "bench/limits/machine.hpp"

namespace velo::bench {

class partner {
 public:
  explicit partner(int cpu) : thread_([this, cpu] { run(cpu); }) {}
  ~partner() {
    start([] {});
    wait();
    {
      const std::lock_guard<std::mutex> lock(lock_);
      ends_ = true;
    }
    wakes_.notify_one();
    thread_.join();
  }
  partner(const partner&) = delete;
  partner& operator=(const partner&) = delete;

  void start(std::function<void()> work) {  // the one before is done
    {
      const std::lock_guard<std::mutex> lock(lock_);
      work_ = std::move(work);
      busy_.store(true, std::memory_order_release);
    }
    wakes_.notify_one();
  }
  void wait() const {
    while (busy_.load(std::memory_order_acquire)) __builtin_ia32_pause();
  }

 private:
  void run(int cpu) {
    pin_thread(cpu);
    while (true) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
      while (!busy_.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until)
        __builtin_ia32_pause();
      std::unique_lock<std::mutex> lock(lock_);
      wakes_.wait(lock, [this] { return busy_.load(std::memory_order_relaxed) || ends_; });
      if (ends_) return;
      lock.unlock();
      work_();
      work_ = nullptr;  // what it held may be gone before the next one comes
      busy_.store(false, std::memory_order_release);
    }
  }

  std::mutex lock_;
  std::condition_variable wakes_;
  std::function<void()> work_;
  std::atomic<bool> busy_{false};
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace velo::bench
