// Checking that the counter is usable as a clock, and reading moments on two clocks.
#include "core/host/ticks.hpp"

#include <x86intrin.h>

#include <atomic>

#include "core/host/cpuid.hpp"

namespace velo::core {
namespace {

std::int64_t clock_ns(clockid_t which) noexcept {
  timespec now{};
  clock_gettime(which, &now);
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// Whether the counter runs at one rate on all cores, also while they sleep; detected once.
enum : int { not_asked, steady, unsteady };
std::atomic<int> counter{not_asked};

__attribute__((noinline)) int ask_counter() noexcept {
  const int answer = bit(cpuid(0x80000007).d, 8) ? steady : unsteady;
  counter.store(answer, std::memory_order_relaxed);
  return answer;
}

}  // namespace

std::uint64_t ticks_now() noexcept {
  int kind = counter.load(std::memory_order_relaxed);
  if (__builtin_expect(kind == not_asked, 0)) kind = ask_counter();
  if (__builtin_expect(kind == steady, 1)) return __rdtsc();
  return static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

// The shortest of three readings, since the thread may be preempted during one.
instant instant::now(clockid_t clock) noexcept {
  instant best;
  std::uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = ticks_now();
    const std::int64_t ns = clock_ns(clock);
    const std::uint64_t took = ticks_now() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, ns};
  }
  return best;
}

tick_scale::tick_scale(const instant& earlier, const instant& later) noexcept : from_(earlier) {
  if (later.ticks <= earlier.ticks) {
    from_ = later;
  } else if (later.ns > earlier.ns) {
    ns_a_tick_ = static_cast<double>(later.ns - earlier.ns) /
                 static_cast<double>(later.ticks - earlier.ticks);
  }
}

}  // namespace velo::core
