// How late the machine lets threads run while a test measures how soon something is reported: a
// thread that sleeps again and again, and the longest that it overslept. A bound is what is
// promised, and so much more for each wake-up on the way: with busy neighbors all are late, the
// witness among them.
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
