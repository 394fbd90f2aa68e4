// Memory that a product copies on its way, a few lines in every call of the micro-kernel.
//
// A copy by itself waits for memory, and stores around the cache that follow each other wait, too.
// A line stored through the cache now and then waits in the store buffer while the sums go on, so
// little of it is left: of 8 MiB within 29 ms of multiplying 0.15 ms, 0.36 around the cache, 0.54
// where each slice is copied before it is multiplied (Zen 4). Each task of a product copies its
// share, spread over its calls. Invariant: every byte is copied once, before the product ends.
// Cost: a load and a store a line.
#pragma once

#include <cassert>
#include <cstdint>

#include "ops/gemm/micro_kernel.hpp"

namespace velo::ops {

// What one product copies: pieces of memory that overlap neither each other nor its result.
struct carried_copy {
  struct piece {
    const char* from;
    char* to;
    std::int64_t bytes;
  };
  static constexpr int most = 2;
  piece pieces[most];
  int count = 0;

  void add(const void* from, void* to, std::int64_t bytes) {
    assert(count < most);
    pieces[count++] = {static_cast<const char*>(from), static_cast<char*>(to), bytes};
  }
};

// One task's share of it.
class carried_share {
 public:
  // Number `share` of `shares`, copied in `calls` calls.
  carried_share(const carried_copy& all, std::int64_t share, std::int64_t shares,
                std::int64_t calls);

  line_copies next() {  // for one call
    if (now_.bytes < line && piece_ + 1 < all_.count) next_piece();
    const auto lines = static_cast<int>(now_.bytes / line);
    return take(lines < lines_a_call_ ? lines : lines_a_call_);
  }
  void finish();  // copies what is left

 private:
  static constexpr std::int64_t line = 64;

  line_copies take(int lines) {
    const line_copies some{now_.from, now_.to, lines};
    now_.from += lines * line, now_.to += lines * line, now_.bytes -= lines * line;
    return some;
  }
  carried_copy::piece part_of(int piece) const;
  void next_piece();  // after what is left of this one, less than a line

  const carried_copy& all_;
  const std::int64_t share_, shares_;
  int piece_ = 0;
  carried_copy::piece now_;  // what is left of it
  int lines_a_call_;
};

}  // namespace velo::ops
