// Measures how late the machine lets threads run while a test measures how soon something is
// reported: a thread sleeps again and again, and keeps the longest time that it overslept. A bound
// is the promised time plus that time for each wake-up on the way, since busy neighbors delay the
// measured threads and this one alike.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace velo::testing {

class lateness {
 public:
  lateness() : witness_([this] { watch(); }) {}
  ~lateness() {
    over_ = true;
    witness_.join();
  }
  lateness(const lateness&) = delete;

  double of_ms(int wake_ups) const { return wake_ups * worst_ms_; }

 private:
  void watch() {
    constexpr std::chrono::milliseconds nap{1};
    while (!over_) {
      const auto begin = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(nap);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin - nap;
      worst_ms_ = std::max(worst_ms_.load(), took.count());
    }
  }

  std::atomic<double> worst_ms_{0};
  std::atomic<bool> over_{false};
  std::thread witness_;  // the last, since it uses the others
};

}  // namespace velo::testing
