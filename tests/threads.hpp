// One function on several threads at once.
#pragma once

#include <thread>
#include <type_traits>
#include <vector>

namespace velo::testing {

// Runs work(0) to work(count - 1), or work() where it takes no number, each on a thread of its own;
// returns when all have ended.
template <class Work>
void on_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int number = 0; number < count; ++number)
    threads.emplace_back([=, &work] {
      if constexpr (std::is_invocable_v<const Work&, int>)
        work(number);
      else
        work();
    });
  for (std::thread& one : threads) one.join();
}

}  // namespace velo::testing
