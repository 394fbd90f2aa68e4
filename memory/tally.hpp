// What one thread has taken and given back, and how the pool's highest values come from that.
//
// A tally is written by its thread alone, so counting costs plain additions; whoever reads sums the
// tallies of all threads. A highest value needs one number of all threads: each thread publishes
// the highs of its own use, and lets go of them when it comes to the shared heap. Of one thread the
// peak is thereby exact; of several it is an upper bound, too high by no more than what threads had
// given back since each of them was last at the heap.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/block.hpp"

namespace velo::memory {

inline constexpr int purposes = 8;
inline constexpr int levels = purposes + 1;  // one for each purpose, and the sum of all

// A quantity of the whole pool.
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
  void count_taken(const block& b, level* all) noexcept {
    add(requested_, static_cast<std::int64_t>(b.requested));
    add(taken_, 1);
    count_up(b.purpose, b.size, all);
    count_up(purposes, b.size, all);
  }
  void count_given(const block& b, std::uint64_t requested) noexcept {
    add(requested_, -static_cast<std::int64_t>(requested));
    add(given_, 1);
    add(bytes_[b.purpose], -static_cast<std::int64_t>(b.size));
    add(bytes_[purposes], -static_cast<std::int64_t>(b.size));
  }

  // Lets go of highs that are past. With the pool's lock.
  void settle(level* all) noexcept {
    for (int at = 0; at < levels; ++at) {
      const std::int64_t now = bytes_[at].load(std::memory_order_relaxed);
      if (now == published_[at]) continue;
      all[at].published.fetch_sub(published_[at] - now, std::memory_order_relaxed);
      published_[at] = now;
    }
  }

  std::int64_t bytes(int at) const noexcept { return bytes_[at].load(std::memory_order_relaxed); }
  std::int64_t requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
  std::int64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
  std::int64_t given() const noexcept { return given_.load(std::memory_order_relaxed); }

  // What a thread that ends leaves; settled.
  void inherit(const tally& gone) noexcept {
    for (int at = 0; at < levels; ++at) {
      add(bytes_[at], gone.bytes(at));
      published_[at] += gone.published_[at];
    }
    add(requested_, gone.requested());
    add(taken_, gone.taken());
    add(given_, gone.given());
  }

 private:
  using number = std::atomic<std::int64_t>;

  void count_up(int at, std::uint64_t size, level* all) noexcept {
    const std::int64_t now = add(bytes_[at], static_cast<std::int64_t>(size));
    if (__builtin_expect(now <= published_[at], 1)) return;
    all[at].raise(now - published_[at]);
    published_[at] = now;
  }
  static std::int64_t add(number& to, std::int64_t what) noexcept {
    const std::int64_t sum = to.load(std::memory_order_relaxed) + what;
    to.store(sum, std::memory_order_relaxed);
    return sum;
  }

  number bytes_[levels] = {};
  number requested_{0}, taken_{0}, given_{0};
  std::int64_t published_[levels] = {};
};

}  // namespace velo::memory
