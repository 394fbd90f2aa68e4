// How a rank writes what its peers read: through the cache, or around it.
//
// Around it (non-temporal stores) bytes go to memory, and peers read them there: the same at any
// distance. Through it they stay in a cache: among ranks that share the third one writing and
// reading are twice as fast, but where they do not each line first has to come from another
// complex, ten times slower. Which it is no topology says for long, since the system moves threads,
// and the host of a virtual machine its processors; so it is measured: now and then a rank times
// how long a line takes that a peer has just written. How long its own writing takes says less,
// since that depends on where the lines were before. Cost of a look: two at the clock and a line
// from each peer.
#pragma once

#include <cstdint>

#include "comm/reduction/reduction.hpp"

namespace velo::comm {

// Whether lines come quickly, by what some took. Zen 4: within a complex 30 to 60 ns, the clock
// among them, from another 170 and more. A single look can be disturbed: it takes some in a row to
// change.
class nearness {
 public:
  static constexpr std::int64_t far_line_ns = 100;
  static constexpr int looks_to_change = 3;
  static constexpr int operations_between = 8;  // from a look to the next, while they agree

  bool is_near() const noexcept { return near_; }
  // Asked whenever a look could be taken, which it counts.
  bool wants_look() noexcept { return until_look_ <= 1 || --until_look_ <= 0; }
  void took(std::int64_t line_ns) noexcept {
    const bool near = line_ns < far_line_ns;
    against_ = near != near_ ? against_ + 1 : 0;
    if (against_ == looks_to_change) near_ = near, against_ = 0;
    until_look_ = against_ > 0 ? 1 : operations_between;
  }

 private:
  bool near_ = false;
  int against_ = 0, until_look_ = 0;
};

class peer_writer {
 public:
  static constexpr std::int64_t judged_from = 4096;  // bytes: less is written in one way

  explicit peer_writer(const nearness& known = {}) : near_(known) {}

  void copy(const reduction_kernels& kernels, const void* from, char* to, std::int64_t bytes) const;
  bool goes_through(std::int64_t bytes) const noexcept;
  nearness& peers() noexcept { return near_; }

 private:
  nearness near_;
};

}  // namespace velo::comm
