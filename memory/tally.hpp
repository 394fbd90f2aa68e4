// What one thread has taken and given back, and how the pool's highest values come from that.
//
// A tally is written by its thread alone, so counting costs plain additions; whoever reads sums the
// tallies of all threads. What a walk over the blocks in use tells is not counted at all. A highest value needs one number of all threads: each thread publishes
// the highs of its own use, and lets go of them at the shared heap once they are well above. Of one
// thread the peak is thereby exact; of several it is an upper bound, too high by no more than what
// threads had given back since each of them was last at the heap, 1 MiB and a sixteenth.
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
  // True when it passed a high: publish() is to follow.
  bool count_taken(std::uint64_t size, std::uint8_t purpose) noexcept {
    add(taken_, 1);
    const bool high = count_up(uses_[purpose], size);
    return count_up(uses_[purposes], size) || high;
  }
  void count_given(std::uint64_t size, std::uint8_t purpose) noexcept {
    add(uses_[purpose].bytes, -static_cast<std::int64_t>(size));
    add(uses_[purposes].bytes, -static_cast<std::int64_t>(size));
  }

  __attribute__((noinline)) void publish(level* all) noexcept {
    for (int at = 0; at < levels; ++at) {
      const std::int64_t now = bytes(at);
      if (now <= uses_[at].published) continue;
      all[at].raise(now - uses_[at].published);
      uses_[at].published = now;
    }
  }
  // Lets go of highs that are past, once that of a purpose or of all is well past. With the pool's
  // lock.
  void settle(std::uint8_t purpose, level* all) noexcept {
    if (is_well_past(uses_[purpose]) || is_well_past(uses_[purposes])) settle_wholly(all);
  }
  void settle_wholly(level* all) noexcept {
    for (int at = 0; at < levels; ++at) {
      const std::int64_t now = bytes(at);
      if (uses_[at].published == now) continue;
      all[at].published.fetch_sub(uses_[at].published - now, std::memory_order_relaxed);
      uses_[at].published = now;
    }
  }

  std::int64_t bytes(int at) const noexcept {
    return uses_[at].bytes.load(std::memory_order_relaxed);
  }
  std::int64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

  // What a thread that ends leaves; settled.
  void inherit(const tally& gone) noexcept {
    for (int at = 0; at < levels; ++at) {
      add(uses_[at].bytes, gone.bytes(at));
      uses_[at].published += gone.uses_[at].published;
    }
    add(taken_, gone.taken());
  }

 private:
  using number = std::atomic<std::int64_t>;
  struct use {
    number bytes{0};
    std::int64_t published = 0;
  };
  static constexpr std::int64_t slack = std::int64_t{1} << 20;

  static bool is_well_past(const use& of) noexcept {
    const std::int64_t now = of.bytes.load(std::memory_order_relaxed);
    return of.published - now > slack + (now > 0 ? now / 16 : 0);
  }
  static bool count_up(use& of, std::uint64_t size) noexcept {
    return add(of.bytes, static_cast<std::int64_t>(size)) > of.published;
  }
  static std::int64_t add(number& to, std::int64_t what) noexcept {
    const std::int64_t sum = to.load(std::memory_order_relaxed) + what;
    to.store(sum, std::memory_order_relaxed);
    return sum;
  }

  number taken_{0};
  use uses_[levels] = {};
};

}  // namespace velo::memory
