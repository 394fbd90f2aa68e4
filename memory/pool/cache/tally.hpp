// A tally counts the bytes that one thread has in use; levels are the pool's peaks, made from all
// tallies.
//
// Only its thread writes a tally, so that counting costs plain additions; a reader sums the tallies
// of all threads. Numbers that a walk over the blocks can find are not counted. A peak needs one
// number for all threads: each thread publishes the highs of its own use, slightly more where there
// are several threads, and lowers its published use in slow calls once it is well above its actual
// use. With one thread the peak is exact. With several it is an upper bound, too high by at most
// the bytes that threads had freed since each of them last made a slow call, 1 MiB and a sixteenth.
//
// A tally stores the distance of the use from the published high, usually below 0, so that the
// addition itself detects a new high. A reader may see a tally too low by the distance that its
// thread is publishing at that time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "memory/pool/heap/block.hpp"

namespace velo::memory {

inline constexpr int purposes = 8;
inline constexpr int levels = purposes + 1;  // one for each purpose, and the sum of all

// The published use of the whole pool, and its highest value.
struct level {
  std::atomic<std::int64_t> published{0}, peak{0};

  void raise(std::int64_t by) noexcept {
    const std::int64_t now = published.fetch_add(by, std::memory_order_relaxed) + by;
    std::int64_t high = peak.load(std::memory_order_relaxed);
    while (now > high && !peak.compare_exchange_weak(high, now, std::memory_order_relaxed)) {
    }
  }
};

class tally {
 public:
  // Returns true if the use passed the published high; the caller then calls publish().
  bool count_taken(std::uint64_t size, std::uint64_t purpose) noexcept {
    const auto bytes = static_cast<std::int64_t>(size);
    add(taken_, 1);
    if (__builtin_expect(add(over_[purpose], bytes), 0)) return add(over_[purposes], bytes), true;
    return __builtin_expect(add(over_[purposes], bytes), 0);
  }
  void count_given(std::uint64_t size, std::uint64_t purpose) noexcept {
    add(over_[purpose], -static_cast<std::int64_t>(size));
    add(over_[purposes], -static_cast<std::int64_t>(size));
  }

  // Publishes the use of a purpose and of all. ahead: slightly more than that, so that a thread
  // whose use keeps rising, as where others free its blocks, does not publish at every allocation.
  __attribute__((noinline)) void publish(level* all, std::uint64_t purpose,
                                         bool ahead = false) noexcept {
    for (const int at : {static_cast<int>(purpose), purposes}) {
      const std::int64_t now = bytes(at);
      if (now <= published(at)) continue;
      const std::int64_t high = ahead ? now + std::min(now / 16, slack / 4) : now;
      all[at].raise(high - published(at));
      move_high(at, high);
    }
  }
  // Lowers the published use to the actual one, once that of a purpose or of all is well below.
  // Called with the pool's lock.
  __attribute__((always_inline)) void settle(std::uint8_t purpose, level* all) noexcept {
    if (is_well_past(purpose) || is_well_past(purposes)) settle_wholly(all);
  }
  __attribute__((noinline)) void settle_wholly(level* all) noexcept {
    for (int at = 0; at < levels; ++at) {
      const std::int64_t now = bytes(at);
      if (published(at) == now) continue;
      all[at].published.fetch_sub(published(at) - now, std::memory_order_relaxed);
      move_high(at, now);
    }
  }

  std::int64_t bytes(int at) const noexcept {
    return published(at) + over_[at].load(std::memory_order_relaxed);
  }
  std::int64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

  // Adds the counts of a thread that ends, which are settled.
  void inherit(const tally& gone) noexcept {
    for (int at = 0; at < levels; ++at) {
      add(over_[at], gone.over_[at].load(std::memory_order_relaxed));
      add(published_[at], gone.published(at));
    }
    add(taken_, gone.taken());
  }

 private:
  using number = std::atomic<std::int64_t>;
  static constexpr std::int64_t slack = std::int64_t{1} << 20;

  bool is_well_past(int at) const noexcept {
    const std::int64_t past = -over_[at].load(std::memory_order_relaxed);
    return past - slack > std::max<std::int64_t>(published(at) - past, 0) / 16;
  }
  std::int64_t published(int at) const noexcept {
    return published_[at].load(std::memory_order_relaxed);
  }
  // Called by the tally's thread.
  void move_high(int at, std::int64_t to) noexcept {
    const std::int64_t by = to - published(at);
    add(over_[at], -by);
    add(published_[at], by);
  }
  // Adds and returns whether the sum is above 0. One instruction suffices, since only one thread
  // writes the number; compilers make several of an atomic's addition.
  static bool add(number& to, std::int64_t what) noexcept {
#if defined(__x86_64__)
    bool above = false;
    asm("addq %2, %0" : "+m"(to), "=@ccg"(above) : "er"(what));
    return above;
#else
    const std::int64_t sum = to.load(std::memory_order_relaxed) + what;
    to.store(sum, std::memory_order_relaxed);
    return sum > 0;
#endif
  }

  number taken_{0};
  number over_[levels] = {};  // the use above the published one
  number published_[levels] = {};
};

}  // namespace velo::memory
