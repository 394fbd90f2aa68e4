// How a rank writes what its peers read: through the cache, or around it.
//
// Around it (non-temporal stores) bytes go to memory, and peers read them there: the same at any
// distance. Through it they stay in a cache: among ranks that share the third one writing and reading
// are twice as fast, but where they do not each line first has to come from another complex, ten
// times slower. Which it is no topology says for long, since the system moves threads, and the host
// of a virtual machine its processors; so it is measured. While a rank writes through the cache it
// times what it writes, and goes around for a while once that is slow; then it tries a piece. Cost:
// two looks at the clock, and where ranks are far from each other 7 us in 32 ms.
#pragma once

#include <algorithm>
#include <cstdint>

#include "comm/reduction.hpp"

namespace velo::comm {

// Whether lines come quickly, by what some took. Zen 4, ns each: within a complex 2, and 4 to 7 as
// long as what was there before went around the cache; from another complex 10 to 30. After slow ones
// it waits before the next trial, longer each time, until enough have been quick.
class nearness {
 public:
  static constexpr std::int64_t line_bytes = 64, slow_line_ns = 5;
  static constexpr std::int64_t settling_bytes = 512 << 10, slow_while_settling_ns = 9;
  static constexpr std::int64_t least_pause_ns = 500000, most_pause_ns = 32000000;

  bool is_near() const noexcept { return near_; }
  bool wants_trial(std::int64_t now_ns) const noexcept { return !near_ && now_ns >= again_at_; }
  // It took until now_ns to write so many bytes through the cache.
  void took(std::int64_t bytes, std::int64_t ns, std::int64_t now_ns) noexcept {
    const bool settled = quick_bytes_ >= settling_bytes;
    near_ = ns * line_bytes <= (settled ? slow_line_ns : slow_while_settling_ns) * bytes;
    if (near_) {
      quick_bytes_ += bytes;
      if (settled) pause_ns_ = std::max(pause_ns_ / 2, least_pause_ns);
    } else {
      quick_bytes_ = 0;
      again_at_ = now_ns + pause_ns_;
      pause_ns_ = std::min(pause_ns_ * 2, most_pause_ns);
    }
  }

 private:
  bool near_ = false;
  std::int64_t quick_bytes_ = 0, again_at_ = 0, pause_ns_ = least_pause_ns;
};

class peer_writer {
 public:
  explicit peer_writer(const nearness& known = {}) : near_(known) {}

  void copy(const reduction_kernels& kernels, const void* from, char* to, std::int64_t bytes);
  bool is_near() const noexcept { return near_.is_near(); }
  // Whether some of the next so many bytes go through the cache.
  bool may_go_through(std::int64_t bytes) const noexcept;

 private:
  void through(const char* from, char* to, std::int64_t bytes, std::int64_t begun);

  nearness near_;
};

}  // namespace velo::comm
